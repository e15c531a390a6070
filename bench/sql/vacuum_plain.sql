vacuum (analyze) plain.inventory_slots, pgmq.q_plain_queue, plain.floor;
