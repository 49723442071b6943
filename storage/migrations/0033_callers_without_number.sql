-- Inbound calls of callers who withhold their number.
alter table calls alter column customer_number drop not null;
