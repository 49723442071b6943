import { Type } from 'typebox';
import type { StoredSipMessage } from '../../storage/queries/sip-messages.ts';
import { nullable, TimeSchema } from './envelope.ts';

const AddressSchema = nullable(
  Type.String({ description: 'IP address and port. Null where a drachtio-server does not report it.' }),
);

export interface PublicSipMessage {
  at: string;
  offset_ms: number;
  leg: string;
  direction: 'in' | 'out';
  transport: string;
  local: string | null;
  remote: string | null;
  method: string | null;
  status: number | null;
  start_line: string;
  summary: string;
  cseq: string | null;
  has_sdp: boolean;
  repeated: boolean;
  sip_call_id: string;
  text: string;
}

export interface PublicSipTrace {
  call_id: string;
  truncated: boolean;
  messages: PublicSipMessage[];
}

const EXAMPLE_MESSAGE = {
  at: '2026-01-31T09:30:00.021Z',
  offset_ms: 21,
  leg: 'agent',
  direction: 'in',
  transport: 'udp',
  local: '192.0.2.10:5060',
  remote: '198.51.100.7:5060',
  method: null,
  status: 180,
  start_line: 'SIP/2.0 180 Ringing',
  summary: '180 Ringing',
  cseq: '1 INVITE',
  has_sdp: false,
  repeated: false,
  sip_call_id: '3f2c9a7e@192.0.2.10',
  text: 'SIP/2.0 180 Ringing\r\nCSeq: 1 INVITE\r\nContent-Length: 0\r\n\r\n',
};

const SipMessageSchema = Type.Object(
  {
    at: TimeSchema,
    offset_ms: Type.Integer({ description: 'Milliseconds since the first message of the call.' }),
    leg: Type.String({ description: 'agent, customer or the leg_id of a further leg.' }),
    direction: Type.Enum(['in', 'out'], { description: '`in`: received by Tandem. `out`: sent by it.' }),
    transport: Type.String({ description: 'udp, tcp or tls.' }),
    local: AddressSchema,
    remote: AddressSchema,
    method: nullable(Type.String({ description: 'Method of a request. Null for a response.' })),
    status: nullable(Type.Integer({ description: 'Status of a response. Null for a request.' })),
    start_line: Type.String({ description: 'First line of the message (RFC 3261 section 7).' }),
    summary: Type.String({ description: 'Method, or status and reason.' }),
    cseq: nullable(Type.String({ description: 'CSeq header.' })),
    has_sdp: Type.Boolean({ description: 'Whether the body contains SDP.' }),
    repeated: Type.Boolean({ description: 'Whether an equal message came before, as in a retransmission.' }),
    sip_call_id: Type.String({ description: 'Call-ID header. Each leg has its own.' }),
    text: Type.String({ description: 'The message, with secrets masked by asterisks.' }),
  },
  { examples: [EXAMPLE_MESSAGE] },
);

export const SipTraceSchema = Type.Object(
  {
    call_id: Type.String({ description: 'Id of the call.' }),
    truncated: Type.Boolean({
      description: 'Whether the call had more than 500 messages or 1 MB of them. The last one is then cut off.',
    }),
    messages: Type.Array(SipMessageSchema, { description: 'Oldest first.' }),
  },
  { examples: [{ call_id: 'c2c_5f0c7a1e', truncated: false, messages: [EXAMPLE_MESSAGE] }] },
);

export function presentSipTrace(callId: string, stored: readonly StoredSipMessage[]): PublicSipTrace {
  const firstMs = stored[0]?.at.getTime() ?? 0;
  const seen = new Set<string>();
  const messages = stored.map((row): PublicSipMessage => {
    const text = row.message.toString('utf8');
    const key = `${row.leg} ${row.direction} ${text}`;
    const repeated = seen.has(key);
    seen.add(key);
    const startLine = /^[^\r\n]*/.exec(text)?.[0] ?? '';
    const response = /^SIP\/2\.0 (\d{3}) ?(.*)$/.exec(startLine);
    const method = response === null ? (startLine.split(' ', 1)[0] ?? '') : null;
    return {
      at: row.at.toISOString(),
      offset_ms: row.at.getTime() - firstMs,
      leg: row.leg,
      direction: row.direction === 'sent' ? 'out' : 'in',
      transport: row.transport,
      local: addressOf(row.localHost, row.localPort),
      remote: addressOf(row.remoteHost, row.remotePort),
      method,
      status: response === null ? null : Number(response[1]),
      start_line: startLine,
      summary: response === null ? (method ?? '') : `${response[1]} ${response[2]}`.trim(),
      cseq: /\ncseq[ \t]*:[ \t]*([^\r\n]*)/i.exec(text)?.[1]?.trim() ?? null,
      has_sdp: /(?:^|\n)v=0\r?\n/.test(bodyOf(text)),
      repeated,
      sip_call_id: row.sipCallId,
      text,
    };
  });
  return { call_id: callId, truncated: stored.some(({ isCut }) => isCut), messages };
}

function bodyOf(message: string): string {
  const end = /\r?\n\r?\n/.exec(message);
  return end === null ? '' : message.slice(end.index + end[0].length);
}

function addressOf(host: string | null, port: number | null): string | null {
  if (host === null || port === null) return null;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
