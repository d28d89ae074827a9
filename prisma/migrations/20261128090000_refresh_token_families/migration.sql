-- AlterTable: nullable, without defaults and indexes, so that no row is read or written, and gateways of the version before go on.
ALTER TABLE "refresh_tokens" ADD COLUMN "family_hash" BYTEA,
ADD COLUMN "previous_hash" BYTEA,
ADD COLUMN "replaced_at" TIMESTAMPTZ(3),
ADD COLUMN "salt" BYTEA;
