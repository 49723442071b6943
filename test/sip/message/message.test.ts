import { describe, expect, it } from 'vitest';
import {
  createRequest,
  createResponse,
  formatNameAddr,
  formatUri,
  formatVia,
  header,
  headers,
  parseCSeq,
  parseMessage,
  parseNameAddr,
  parseUri,
  parseVia,
  type SipMessage,
  SipParseError,
  StreamFramer,
  serializeMessage,
  setHeader,
} from '../../../sip/message/index.ts';
import * as fc from '../../properties.ts';

describe('parseMessage', () => {
  it('parses a request with compact forms, folded lines and several values per line', () => {
    const message = parse(
      [
        'INVITE sip:bob@biloxi.example SIP/2.0',
        'v: SIP/2.0/UDP a.example;branch=z9hG4bK1, SIP/2.0/TCP b.example;branch=z9hG4bK2',
        'Via: SIP/2.0/UDP c.example',
        '  ;branch=z9hG4bK3',
        'f: "A, B" <sip:a@a.example>;tag=1',
        't:<sip:b@b.example>',
        'i  : abc@host',
        'CSEQ: 1 INVITE',
        'l: 4',
        '',
        'bodytrailing',
      ].join('\r\n'),
    );
    expect(message.kind).toBe('request');
    expect(headers(message, 'Via')).toEqual([
      'SIP/2.0/UDP a.example;branch=z9hG4bK1',
      'SIP/2.0/TCP b.example;branch=z9hG4bK2',
      'SIP/2.0/UDP c.example ;branch=z9hG4bK3',
    ]);
    expect(header(message, 'v')).toBe('SIP/2.0/UDP a.example;branch=z9hG4bK1');
    expect(header(message, 'From')).toBe('"A, B" <sip:a@a.example>;tag=1');
    expect(header(message, 'call-id')).toBe('abc@host');
    expect(message.headers.map(({ name }) => name)).toEqual(['Via', 'Via', 'From', 'To', 'Call-ID', 'CSeq']);
    expect(message.body.toString()).toBe('body');
  });

  it('parses a response without a reason phrase (RFC 4475 section 3.1.1.13)', () => {
    expect(parse('SIP/2.0 100 \r\n\r\n')).toMatchObject({ kind: 'response', statusCode: 100, reasonPhrase: '' });
    expect(parse('SIP/2.0 100\r\n\r\n')).toMatchObject({ kind: 'response', statusCode: 100, reasonPhrase: '' });
  });

  it('parses a reason phrase with Unicode line separators, which end no SIP line', () => {
    const message = parseMessage(Buffer.from('SIP/2.0 486 busy\u2028here\u2029\u0085now\r\n\r\n'));
    expect(message).toMatchObject({ statusCode: 486, reasonPhrase: 'busy\u2028here\u2029\u0085now' });
  });

  it('takes the rest of a datagram as body without Content-Length', () => {
    expect(parse('MESSAGE sip:a@b SIP/2.0\r\n\r\nhello').body.toString()).toBe('hello');
  });

  it('decodes headers that are not UTF-8 as Latin-1', () => {
    const bytes = Buffer.from('OPTIONS sip:a@b SIP/2.0\r\nFrom: "Jos\u00e9" <sip:j@b>;tag=1\r\n\r\n', 'latin1');
    expect(parseNameAddr(header(parseMessage(bytes), 'from') ?? '').displayName).toBe('José');
  });

  it.each([
    ['a longer body than the datagram', 'OPTIONS sip:a@b SIP/2.0\r\nContent-Length: 9\r\n\r\nx', 'BAD_CONTENT_LENGTH'],
    ['a negative length', 'OPTIONS sip:a@b SIP/2.0\r\nContent-Length: -9\r\n\r\nx', 'BAD_CONTENT_LENGTH'],
    ['two lengths', 'OPTIONS sip:a@b SIP/2.0\r\nl: 1\r\nContent-Length: 1\r\n\r\nx', 'BAD_CONTENT_LENGTH'],
    ['another version', 'OPTIONS sip:a@b SIP/7.0\r\n\r\n', 'BAD_VERSION'],
    ['white space in the request URI', 'OPTIONS sip:a@b; lr SIP/2.0\r\n\r\n', 'BAD_START_LINE'],
    ['brackets around the request URI', 'OPTIONS <sip:a@b> SIP/2.0\r\n\r\n', 'BAD_START_LINE'],
    ['a line without a colon', 'OPTIONS sip:a@b SIP/2.0\r\nnonsense\r\n\r\n', 'BAD_HEADER'],
  ])('rejects %s and returns the headers needed for a response', (_what, text, code) => {
    const error = refusal(text);
    expect(error.code).toBe(code);
    expect(error.request?.method).toBe('OPTIONS');
  });

  it.each([
    ['nothing', ''],
    ['a keepalive', '\r\n\r\n'],
    ['another protocol', 'GET / HTTP/1.1\r\n\r\n'],
    ['an overlarge status code', 'SIP/2.0 4294967301 better not break the receiver\r\n\r\n'],
    ['a status code below 100', 'SIP/2.0 099 x\r\n\r\n'],
  ])('rejects %s without a response', (_what, text) => {
    expect(refusal(text).request).toBeNull();
  });

  it('rejects an endless header', () => {
    const endless = Buffer.from(`OPTIONS sip:a@b SIP/2.0\r\nX: ${'a'.repeat(40_000)}`);
    expect(() => parseMessage(endless)).toThrow(SipParseError);
    const crowded = Buffer.from(`OPTIONS sip:a@b SIP/2.0\r\n${'X: a\r\n'.repeat(300)}\r\n`);
    expect(() => parseMessage(crowded)).toThrow(SipParseError);
  });

  it('throws SipParseError only, for any input', () => {
    const fragments = fc.constantFrom(
      'INVITE sip:a@b SIP/2.0\r\n',
      'SIP/2.0 200 OK\r\n',
      'Via: ',
      'SIP/2.0/UDP h;branch=',
      'From: "',
      '<',
      '>',
      ';tag=',
      '\r\n',
      '\r\n ',
      '\r\n\r\n',
      'Content-Length: ',
      '99999999999',
      '-1',
      ':',
      ',',
      '"',
      '\\',
      '\0',
      '%',
      '[::1]',
      '\n',
    );
    const hostile = fc.oneof(
      fc.uint8Array({ maxLength: 512 }).map((bytes) => Buffer.from(bytes)),
      fc.array(fragments, { maxLength: 40 }).map((parts) => Buffer.from(parts.join(''))),
    );
    fc.assert(
      fc.property(hostile, (bytes) => {
        onlyParseErrors(() => {
          const message = parseMessage(bytes);
          for (const each of message.headers) {
            onlyParseErrors(() => parseVia(each.value));
            onlyParseErrors(() => parseNameAddr(each.value));
            onlyParseErrors(() => parseUri(each.value));
            onlyParseErrors(() => parseCSeq(each.value));
            headers(message, each.name);
          }
        });
        onlyParseErrors(() => new StreamFramer().push(bytes));
      }),
      { numRuns: 2000 },
    );
  });
});

describe('serializeMessage', () => {
  it('writes what parseMessage reads as the same message', () => {
    fc.assert(
      fc.property(anyMessage(), (message) => {
        expect(parseMessage(serializeMessage(message))).toEqual(message);
      }),
    );
  });

  it('writes Content-Length in bytes and prevents header injection', () => {
    const request = createRequest({
      method: 'INFO',
      uri: 'sip:a@b',
      headers: [['Subject', 'x\r\nEvil: 1']],
      body: 'é',
    });
    expect(serializeMessage(request).toString()).toBe(
      'INFO sip:a@b SIP/2.0\r\nSubject: x Evil: 1\r\nContent-Length: 2\r\n\r\né',
    );
  });

  it('writes canonical header names', () => {
    const names = ['call-id', 'cseq', 'www-authenticate', 'x-my-header', 'X-MY-Header', 'RAck', 'user-agent', 'm'];
    const request = createRequest({
      method: 'INFO',
      uri: 'sip:a@b',
      headers: names.map((name) => [name, '1'] as const),
    });
    expect(request.headers.map(({ name }) => name)).toEqual([
      'Call-ID',
      'CSeq',
      'WWW-Authenticate',
      'X-My-Header',
      'X-MY-Header',
      'RAck',
      'User-Agent',
      'Contact',
    ]);
  });

  it('replaces all lines of a header by one', () => {
    const request = createRequest({
      method: 'INFO',
      uri: 'sip:a@b',
      headers: [
        ['v', '1'],
        ['To', 'x'],
        ['Via', '2'],
      ],
    });
    setHeader(request, 'via', '3');
    expect(request.headers.map(({ name, value }) => `${name}=${value}`)).toEqual(['Via=3', 'To=x']);
  });
});

describe('StreamFramer', () => {
  it('extracts the same messages for any chunks', () => {
    fc.assert(
      fc.property(
        fc.array(anyMessage(), { minLength: 1, maxLength: 4 }),
        fc.infiniteStream(fc.integer({ min: 1, max: 60 })),
        (messages, cuts) => {
          const stream = Buffer.concat(messages.map(serializeMessage));
          const framer = new StreamFramer();
          const found: SipMessage[] = [];
          for (let at = 0; at < stream.length; ) {
            const length = cuts.next().value ?? 1;
            for (const frame of framer.push(stream.subarray(at, at + length))) {
              if (frame.type === 'message') found.push(parseMessage(frame.bytes));
            }
            at += length;
          }
          expect(found).toEqual(messages);
        },
      ),
    );
  });

  it('reports a double CRLF as a ping and drops a single one', () => {
    const framer = new StreamFramer();
    const frames = ['\r', '\n', '\r\n', '\r\n', 'OPTIONS sip:a@b SIP/2.0\r\n\r\n', '\r\n\r\n\r\n\r\n'].flatMap((text) =>
      framer.push(Buffer.from(text)),
    );
    expect(frames.map(({ type }) => type)).toEqual(['ping', 'message', 'ping', 'ping']);
  });

  it('rejects streams that are not SIP or grow without end', () => {
    expect(() => new StreamFramer().push(Buffer.from([0x16, 3, 1, 2]))).toThrow(SipParseError);
    expect(() => new StreamFramer().push(Buffer.alloc(40_000, 'a'))).toThrow(SipParseError);
    expect(() => new StreamFramer().push(Buffer.from('INFO sip:a SIP/2.0\r\nContent-Length: 9999999\r\n\r\n'))).toThrow(
      SipParseError,
    );
  });
});

describe('parseUri', () => {
  it('parses user, password, host, port, parameters and headers', () => {
    const uri = parseUri('sip:+1555;phone-context=x:secret@[2001:DB8::1]:5070;transport=TCP;lr?a=b');
    expect(uri).toEqual({
      scheme: 'sip',
      user: '+1555;phone-context=x',
      password: 'secret',
      host: '[2001:db8::1]',
      port: 5070,
      params: new Map([
        ['transport', 'TCP'],
        ['lr', null],
      ]),
      headers: 'a=b',
    });
    expect(formatUri(uri)).toBe('sip:+1555;phone-context=x:secret@[2001:db8::1]:5070;transport=TCP;lr?a=b');
  });

  it.each([
    'sip:',
    'sip:@host',
    'sip:a@',
    'sip:a@b:99999',
    'sip:a@b c',
    'sip:a@[::1',
    'nothing',
    'tel:+1555',
    'http://x',
  ])('rejects %s', (text) => {
    expect(() => parseUri(text)).toThrow(SipParseError);
  });
});

describe('parseNameAddr', () => {
  it('separates URI parameters in brackets from header parameters', () => {
    expect(parseNameAddr('"Q \\"x\\" <y>" <sip:a@b;lr>;tag=1;Q=0.5')).toEqual({
      displayName: 'Q "x" <y>',
      uri: 'sip:a@b;lr',
      params: new Map([
        ['tag', '1'],
        ['q', '0.5'],
      ]),
    });
    expect(parseNameAddr('sip:a@b;tag=1')).toEqual({
      displayName: null,
      uri: 'sip:a@b',
      params: new Map([['tag', '1']]),
    });
    expect(parseNameAddr('Watson, T <sip:a@b>').displayName).toBe('Watson, T');
  });

  it('survives a round trip', () => {
    for (const text of ['<sip:a@b>', 'Bob Smith <sip:a@b>;tag=x', '"Bob, \\"B\\"" <sip:a@b;lr>;tag=x;isfocus']) {
      expect(formatNameAddr(parseNameAddr(text))).toBe(text);
    }
  });

  it.each(['"never closed <sip:a@b>', '<sip:a@b', '<>', '', '"Bob"', '<sip:a@b> junk', 'sip:a@b, sip:c@d'])(
    'rejects %s',
    (text) => {
      expect(() => parseNameAddr(text)).toThrow(SipParseError);
    },
  );
});

describe('parseVia and parseCSeq', () => {
  it('parse a Via with white space wherever the grammar allows it', () => {
    const via = parseVia('SIP  / 2.0\t/ udp  [::1] : 5060 ; branch = z9hG4bK1 ; rport;received=10.0.0.1');
    expect(via).toEqual({
      transport: 'UDP',
      host: '[::1]',
      port: 5060,
      params: new Map([
        ['branch', 'z9hG4bK1'],
        ['rport', null],
        ['received', '10.0.0.1'],
      ]),
    });
    expect(formatVia(via)).toBe('SIP/2.0/UDP [::1]:5060;branch=z9hG4bK1;rport;received=10.0.0.1');
  });

  it.each(['z9hG4bK/a+b==', 'z9hG4bK{1}@host?'])('format a branch as it came: %s', (branch) => {
    const text = `SIP/2.0/UDP 192.0.2.7:5060;branch=${branch};rport`;
    expect(formatVia(parseVia(text))).toBe(text);
  });

  it.each(['"a;received=1.2.3.4"', '"a,b"', '"a b"', '"a\\"b"'])('keep the quotes of %s', (value) => {
    const text = `SIP/2.0/UDP 192.0.2.7:5060;x=${value};received=192.0.2.7`;
    expect(formatVia(parseVia(text))).toBe(text);
  });

  it('reject a CSeq of 2^31 and one without a method', () => {
    expect(parseCSeq('2147483647   INVITE')).toEqual({ sequence: 2_147_483_647, method: 'INVITE' });
    expect(() => parseCSeq('2147483648 INVITE')).toThrow(SipParseError);
    expect(() => parseCSeq('1')).toThrow(SipParseError);
  });
});

function parse(text: string): SipMessage {
  return parseMessage(Buffer.from(text));
}

function refusal(text: string): SipParseError {
  try {
    parse(text);
  } catch (error) {
    if (error instanceof SipParseError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

function onlyParseErrors(action: () => unknown): void {
  try {
    action();
  } catch (error) {
    if (!(error instanceof SipParseError)) throw error;
  }
}

function anyMessage(): fc.Arbitrary<SipMessage> {
  const name = fc.constantFrom('Via', 'From', 'X-Thing', 'Call-ID', 'Subject', 'Contact');
  const value = fc.string({ unit: 'grapheme', maxLength: 60 }).map((text) => text.replace(/[\p{Cc}\n\r]/gu, '').trim());
  const lines = fc.array(fc.tuple(name, value), { maxLength: 8 });
  const body = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes));
  return fc.oneof(
    fc
      .record({ method: fc.constantFrom('INVITE', 'ACK', 'X-~!'), uri: fc.webUrl(), headers: lines, body })
      .map(createRequest),
    fc
      .record({ statusCode: fc.integer({ min: 100, max: 699 }), reasonPhrase: value, headers: lines, body })
      .map(createResponse),
  );
}
