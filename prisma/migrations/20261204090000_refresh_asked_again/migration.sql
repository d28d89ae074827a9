-- AlterTable: nullable, without defaults and indexes, so that no row is read or written, and gateways of the version before go on.
ALTER TABLE "refresh_tokens" ADD COLUMN "replaced_from" TEXT,
ADD COLUMN "asked_again_at" TIMESTAMPTZ(3);
