-- CreateTable
CREATE TABLE "used_tickets" (
    "job_id" UUID NOT NULL,
    "used_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "used_tickets_pkey" PRIMARY KEY ("job_id")
);

-- CreateIndex
CREATE INDEX "used_tickets_used_at_idx" ON "used_tickets"("used_at");
