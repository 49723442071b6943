import { isToken } from './lexing.ts';
import { SipParseError } from './parse-error.ts';

export interface CSeq {
  /** 0 to 2^31 - 1 (RFC 3261 §8.1.1.5). */
  sequence: number;
  method: string;
}

/** @throws SipParseError `BAD_CSEQ`. */
export function parseCSeq(text: string): CSeq {
  const match = /^\s*(\d{1,10})\s+(\S{1,64})\s*$/.exec(text);
  const method = match?.[2];
  if (!match || method === undefined || !isToken(method)) {
    throw new SipParseError('BAD_CSEQ', 'CSeq is not a number and a method');
  }
  const sequence = Number(match[1]);
  if (sequence > 0x7fff_ffff) throw new SipParseError('BAD_CSEQ', 'CSeq is 2^31 or more');
  return { sequence, method };
}
