/** Builds sipp scenarios. Each function returns one step as XML. */

interface MessageParts {
  headers?: readonly string[];
  /** Lines of an SDP body, such as `PCMU_SDP`. */
  sdp?: readonly string[];
  body?: { type: string; text: string };
}

interface ResponseParts extends MessageParts {
  /** To tag, to simulate several phones. Default: one per call. */
  tag?: string;
  /** Whether to send Contact. Default: true. */
  contact?: boolean;
  /** Whether to send compact header names (RFC 3261 section 7.3.3). Default: false. */
  isCompact?: boolean;
}

const CONTACT = 'Contact: <sip:sipp@[local_ip]:[local_port];transport=[transport]>';
const OWN_TAG = '[pid]sipp[call_number]';

/** Builds the lines of an SDP body with one audio stream. */
export function sdpOf({
  formats = '0 101',
  attributes = ['rtpmap:0 PCMU/8000', 'rtpmap:101 telephone-event/8000', 'fmtp:101 0-15', 'ptime:20'],
  version = 1,
  address = '[media_ip]',
}: {
  formats?: string;
  attributes?: readonly string[];
  version?: number;
  address?: string;
} = {}): string[] {
  return [
    'v=0',
    `o=sipp 1 ${version} IN IP[local_ip_type] [local_ip]`,
    's=-',
    `c=IN IP[media_ip_type] ${address}`,
    't=0 0',
    `m=audio [rtpstream_audio_port] RTP/AVP ${formats}`,
    ...attributes.map((attribute) => `a=${attribute}`),
  ];
}

export const PCMU_SDP = sdpOf();

/** Waits for the initial INVITE, as the called party, and stores its headers for later messages. */
export function receiveInvite(): string {
  return `<recv request="INVITE" rrs="true">
    <action>
      <ereg regexp=".*" search_in="hdr" header="From:" assign_to="caller"/>
      <ereg regexp=".*" search_in="hdr" header="To:" assign_to="called"/>
      <ereg regexp=".*" search_in="hdr" header="Via:" assign_to="via"/>
      <ereg regexp="[0-9]+" search_in="hdr" header="CSeq:" assign_to="sequence"/>
    </action>
  </recv>
  <Reference variables="caller,called,via,sequence"/>`;
}

/** Waits for a request, and ignores retransmissions of the INVITE before it. */
export function receive(method: string): string {
  const before = method === 'INVITE' ? '' : RETRANSMITTED_INVITE;
  return `${before}<recv request="${method}" rrs="true"/>`;
}

/**
 * On a busy machine sipp may respond so late that the INVITE is retransmitted. sipp 3.6 aborts on an INVITE that it has
 * answered, instead of repeating the response (RFC 3261 section 17.2.1).
 */
const RETRANSMITTED_INVITE = '<recv request="INVITE" optional="true"/>\n  '.repeat(2);

/** Waits for a request whose header matches the regular expression; else the scenario fails. */
export function receiveWith(method: string, header: string, pattern: string): string {
  return `<recv request="${method}" rrs="true">
    <action>
      <ereg regexp="${escaped(pattern)}" search_in="hdr" header="${header}:" check_it="true" assign_to="found_${method}"/>
    </action>
  </recv>
  <Reference variables="found_${method}"/>`;
}

/** Waits for a final response, optionally after provisional ones. */
export function receiveStatus(status: number, { provisional = [100] as readonly number[] } = {}): string {
  const before = provisional.map((each) => `<recv response="${each}" optional="true"/>`);
  return [...before, `<recv response="${status}" rrs="true"/>`].join('\n  ');
}

export function pause(ms: number): string {
  return `<pause milliseconds="${ms}"/>`;
}

/** Plays the mu-law file `tone.ul` endlessly, as payload type 0. */
export function playTone(): string {
  return '<nop><action><exec rtp_stream="tone.ul,-1,0"/></action></nop>';
}

/** Responds to the initial INVITE; a final response is repeated until the ACK. */
export function respondInvite(status: number, phrase: string, parts: ResponseParts = {}): string {
  return send(responseTo(status, phrase, { ...parts, addsTag: true }), { isRepeated: status >= 200 });
}

/** Responds to the initial INVITE after a later request. A CANCEL has the Via of its INVITE (RFC 3261 section 9.1). */
export function respondInviteLater(
  status: number,
  phrase: string,
  { after = 'CANCEL', ...parts }: MessageParts & { after?: 'CANCEL' | 'PRACK' } = {},
): string {
  const lines = [
    `SIP/2.0 ${status} ${phrase}`,
    after === 'CANCEL' ? '[last_Via:]' : 'Via: [$via]',
    'From: [$caller]',
    `To: [$called];tag=${OWN_TAG}`,
    'Call-ID: [call_id]',
    'CSeq: [$sequence] INVITE',
    CONTACT,
  ];
  return send(withBody(lines, parts), { isRepeated: true });
}

/** Responds to an in-dialog request. */
export function respond(status: number, phrase: string, parts: ResponseParts = {}): string {
  return send(responseTo(status, phrase, { ...parts, addsTag: false }), { isRepeated: false });
}

/** Sends an in-dialog request as the called party. */
export function requestAsCalled(method: string, sequence: number, parts: MessageParts = {}): string {
  const isAck = method === 'ACK';
  const lines = [
    `${method} [next_url] SIP/2.0`,
    'Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]',
    'Max-Forwards: 70',
    '[routes]',
    `From: [$called];tag=${OWN_TAG}`,
    'To: [$caller]',
    'Call-ID: [call_id]',
    `CSeq: ${sequence} ${method}`,
    CONTACT,
  ];
  return send(withBody(lines, parts), { isRepeated: !isAck });
}

/** Sends a request as the caller. All but the initial INVITE have the To tag of the peer. */
export function requestAsCaller(
  method: string,
  sequence: number,
  { isInDialog = method !== 'INVITE', target = null, ...parts }: CallerParts = {},
): string {
  const uri = target ?? (isInDialog && method !== 'CANCEL' ? '[next_url]' : 'sip:[service]@[remote_ip]:[remote_port]');
  const { branch = '[branch]' } = parts;
  const lines = [
    `${method} ${uri} SIP/2.0`,
    `Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=${branch}`,
    ...(parts.headers?.some((header) => header.startsWith('Max-Forwards')) ? [] : ['Max-Forwards: 70']),
    ...(isInDialog && method !== 'CANCEL' ? ['[routes]'] : []),
    `From: <sip:+919822222222@[local_ip]>;tag=${OWN_TAG}`,
    `To: <sip:[service]@[remote_ip]>${isInDialog && method !== 'CANCEL' ? '[peer_tag_param]' : ''}`,
    'Call-ID: [call_id]',
    `CSeq: ${sequence} ${method}`,
    CONTACT,
  ];
  return send(withBody(lines, parts), { isRepeated: method !== 'ACK' });
}

interface CallerParts extends MessageParts {
  isInDialog?: boolean;
  target?: string | null;
  /** `[branch-N]` repeats the branch of N steps before, as in CANCEL and the ACK of a rejection. Default: a new one. */
  branch?: string;
}

/** Joins steps to the XML file of a scenario. */
export function scenarioFile(name: string, steps: readonly string[]): string {
  return `<?xml version="1.0" encoding="UTF-8"?>
<scenario name="${name}">
  ${steps.join('\n  ')}
</scenario>
`;
}

const COMPACT: Readonly<Record<string, string>> = {
  'Content-Type': 'c',
  'Content-Length': 'l',
  Contact: 'm',
};

/** `addsTag`: the request had no To tag, so the response adds one. */
function responseTo(status: number, phrase: string, parts: ResponseParts & { addsTag: boolean }): string[] {
  const { tag = OWN_TAG, contact = true, isCompact = false, addsTag } = parts;
  const lines = [
    `SIP/2.0 ${status} ${phrase}`,
    '[last_Via:]',
    '[last_Record-Route:]',
    '[last_From:]',
    addsTag && status !== 100 ? `[last_To:];tag=${tag}` : '[last_To:]',
    '[last_Call-ID:]',
    '[last_CSeq:]',
    ...(contact ? [CONTACT] : []),
  ];
  const whole = withBody(lines, parts);
  if (!isCompact) return whole;
  return whole.map((line) => line.replace(/^(Content-Type|Content-Length|Contact)(?=:)/, (name) => COMPACT[name]!));
}

function withBody(lines: readonly string[], { headers = [], sdp, body }: MessageParts): string[] {
  const typed = sdp === undefined ? body : { type: 'application/sdp', text: sdp.join('\n') };
  if (typed === undefined) return [...lines, ...headers, 'Content-Length: 0', '', ''];
  return [
    ...lines,
    ...headers,
    `Content-Type: ${typed.type}`,
    'Content-Length: [len]',
    '',
    ...typed.text.split('\n'),
    '',
  ];
}

/** `isRepeated`: retransmits from 500 ms (T1, RFC 3261 section 17) until the next message arrives. */
function send(lines: readonly string[], { isRepeated }: { isRepeated: boolean }): string {
  const text = lines.map((line) => `      ${line}`.trimEnd()).join('\n');
  return `<send${isRepeated ? ' retrans="500"' : ''}>
    <![CDATA[
${text}
    ]]>
  </send>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}
