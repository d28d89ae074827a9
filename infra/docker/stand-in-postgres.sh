# What PostgreSQL's own image does: makes the role and the database of POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB once, then serves.
set -eu
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
cd /var/lib/postgresql/data
chown postgres .
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups "$@"; }
if [ ! -e PG_VERSION ]; then
  as_postgres sh -c 'umask 077 && echo "$POSTGRES_PASSWORD" >/tmp/password'
  as_postgres initdb --pgdata . --username "$POSTGRES_USER" --auth-host scram-sha-256 --pwfile /tmp/password
  echo 'host all all all scram-sha-256' >>pg_hba.conf
  echo "CREATE DATABASE $POSTGRES_DB" | as_postgres postgres --single -D . postgres
fi
exec setpriv --reuid=postgres --regid=postgres --init-groups postgres -D . -c 'listen_addresses=*'
