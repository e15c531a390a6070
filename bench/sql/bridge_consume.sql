-- The plain worker's second round trip a message.
update public.inventory_slots set status = 'CONSUMED' where id = $1 and status = 'RESERVED';
