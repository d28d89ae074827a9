-- CreateTable
CREATE TABLE "audit_events" (
    "id" UUID NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "event" TEXT NOT NULL,
    "outcome" TEXT NOT NULL,
    "count" INTEGER NOT NULL DEFAULT 1,
    "user_id" UUID,
    "session_id" UUID,
    "address" TEXT,

    CONSTRAINT "audit_events_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "audit_events_user_id_id_idx" ON "audit_events"("user_id", "id");

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
