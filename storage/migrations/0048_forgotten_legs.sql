-- Legs that stayed when their call was settled while its node could not reach the SIP server. Few rows.
create index calls_forgotten_legs on calls (owner_node)
  where leg_handles is not null and state in ('completed', 'failed', 'rejected');
