-- AlterTable: nullable and without a default, so that no row is read or written, and gateways of the version before go on.
ALTER TABLE "users" ADD COLUMN "disabled_at" TIMESTAMPTZ(3);
