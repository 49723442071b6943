-- Whether the media of a trunk's calls is encrypted with SRTP, by keys in SDP (RFC 4568).
alter table trunks add column media_encryption text not null default 'none'
  check (media_encryption in ('none', 'optional', 'required'));
