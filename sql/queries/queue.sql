-- Works commands on waiting lines off; what they do and answer is told where {schema}.run_queue is made
-- (migrations/0002_waiting_line.sql).
--   $1 text[] kinds  $2 text[] resources  $3 text[] owners  $4 bigint[] TTLs  $5 text[] keys  $6 bigint[] nodes
--   $7 bigint[] places  $8 bigint[] attachments  $9 bigint[] tokens  $10 bigint[] not_after
--   $11 bigint places per resource  $12 boolean skip locked rows  $13 text lock_timeout
SELECT out_ordinal AS ordinal, out_verdict AS verdict,
    (date_part('epoch', out_acquired_at) * 1000000)::bigint AS acquired_at_us,
    (date_part('epoch', out_expires_at) * 1000000)::bigint AS expires_at_us,
    out_token AS fencing_token,
    (date_part('epoch', out_clock) * 1000000)::bigint AS clock_us,
    out_place AS place, out_attachment AS attachment, out_position AS position, out_wakes AS wakes,
    out_handed_place AS handed_place, out_handed_attachment AS handed_attachment, out_handed_owner AS handed_owner
FROM {schema}.run_queue($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[],
    $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint, $12::boolean, $13::text)
