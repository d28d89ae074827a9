-- AlterTable: nullable, without defaults and indexes, so that no row is read or written, and gateways of the version before go on.
ALTER TABLE "sessions" ADD COLUMN "address" TEXT,
ADD COLUMN "device" TEXT;
