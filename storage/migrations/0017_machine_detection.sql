-- What to do when a machine answers the customer's number. Null: machine detection is off.
alter table calls add column on_machine text check (on_machine in ('continue', 'hangup'));
