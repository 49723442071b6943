-- Calls by the last digits of either party, newest first.
create index calls_agent_digits on calls (workspace_id, reverse(agent_number) text_pattern_ops)
  where agent_number is not null;
create index calls_customer_digits on calls (workspace_id, reverse(customer_number) text_pattern_ops)
  where customer_number is not null;
