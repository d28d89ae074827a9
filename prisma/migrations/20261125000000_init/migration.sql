-- Without infinity, years BC and years of five digits: JavaScript reads none of them.
CREATE DOMAIN "instant" AS TIMESTAMPTZ(3)
    CONSTRAINT "years_1_to_9999" CHECK (VALUE >= '0001-01-01 00:00:00+00' AND VALUE < '10000-01-01 00:00:00+00');

-- CreateTable
CREATE TABLE "users" (
    "id" UUID NOT NULL,
    "email" TEXT NOT NULL,
    "password_hash" TEXT NOT NULL,
    "credential_version" INTEGER NOT NULL DEFAULT 1,
    "created_at" "instant" NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" "instant" NOT NULL,
    "email_confirmed_at" "instant",
    "disabled_at" "instant",
    "links_void_before" "instant",
    "password_changed_at" "instant",

    CONSTRAINT "users_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "sessions" (
    "id" UUID NOT NULL,
    "user_id" UUID NOT NULL,
    "created_at" "instant" NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" "instant" NOT NULL,
    "idle_ends_at" "instant" NOT NULL,
    "revoked_at" "instant",
    "device" TEXT,
    "address" TEXT,
    "family_hash" BYTEA NOT NULL,
    "token_hash" BYTEA NOT NULL,
    "previous_hash" BYTEA,
    "replaced_at" "instant",
    "salt" BYTEA,
    "replaced_from" TEXT,
    "asked_again_at" "instant",

    CONSTRAINT "sessions_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "users_email_key" ON "users"("email");

-- CreateIndex
CREATE INDEX "sessions_user_id_id_idx" ON "sessions"("user_id", "id");

-- CreateIndex
CREATE INDEX "sessions_expires_at_idx" ON "sessions"("expires_at");

-- AddForeignKey
ALTER TABLE "sessions" ADD CONSTRAINT "sessions_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- CreateTable
CREATE TABLE "used_tickets" (
    "job_id" UUID NOT NULL,
    "mark" UUID NOT NULL,

    CONSTRAINT "used_tickets_pkey" PRIMARY KEY ("job_id")
);

-- CreateTable
CREATE TABLE "blocks" (
    "network" TEXT NOT NULL,
    "until" TIMESTAMPTZ(3) NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "operator" TEXT NOT NULL,
    "reason" TEXT NOT NULL,

    CONSTRAINT "blocks_pkey" PRIMARY KEY ("network")
);

-- CreateTable
CREATE TABLE "deleted_addresses" (
    "digest" BYTEA NOT NULL,
    "key_id" TEXT NOT NULL,

    CONSTRAINT "deleted_addresses_pkey" PRIMARY KEY ("digest")
);

-- CreateTable
CREATE TABLE "mail_tokens" (
    "id" UUID NOT NULL,
    "token_hash" BYTEA NOT NULL,
    "purpose" TEXT NOT NULL,
    "user_id" UUID,
    "email" TEXT NOT NULL,
    "credential_version" INTEGER NOT NULL,
    "created_at" "instant" NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" "instant" NOT NULL,
    "used_at" "instant",

    CONSTRAINT "mail_tokens_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "mail_tokens_token_hash_key" ON "mail_tokens"("token_hash");

-- CreateIndex
CREATE INDEX "mail_tokens_user_id_idx" ON "mail_tokens"("user_id");

-- CreateIndex
CREATE INDEX "mail_tokens_expires_at_idx" ON "mail_tokens"("expires_at");

-- AddForeignKey
ALTER TABLE "mail_tokens" ADD CONSTRAINT "mail_tokens_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- CreateTable
CREATE TABLE "audit_events" (
    "id" UUID NOT NULL,
    "at" "instant" NOT NULL,
    "event" TEXT NOT NULL,
    "outcome" TEXT NOT NULL,
    "count" INTEGER NOT NULL DEFAULT 1,
    "user_id" UUID,
    "session_id" UUID,
    "address" TEXT,
    "request_id" TEXT,
    "known_device" BOOLEAN,
    "failures" INTEGER,
    "operator" TEXT,
    "reason" TEXT,

    CONSTRAINT "audit_events_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "audit_events_user_id_id_idx" ON "audit_events"("user_id", "id");

-- CreateIndex
CREATE INDEX "audit_events_address_id_idx" ON "audit_events"("address", "id");

-- CreateIndex
CREATE INDEX "audit_events_request_id_idx" ON "audit_events"("request_id");

-- CreateIndex
CREATE INDEX "audit_events_event_id_idx" ON "audit_events"("event", "id");

-- Append-only: rows are never changed, and deleted only once they are older than a day, which is the shortest retention.
CREATE FUNCTION "refuse_audit_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit events are append-only: % is refused', TG_OP USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE TRIGGER "audit_events_no_change" BEFORE UPDATE OR TRUNCATE ON "audit_events"
FOR EACH STATEMENT EXECUTE FUNCTION "refuse_audit_change"();

CREATE TRIGGER "audit_events_no_early_deletion" BEFORE DELETE ON "audit_events"
FOR EACH ROW WHEN (OLD."at" > now() - interval '1 day') EXECUTE FUNCTION "refuse_audit_change"();
