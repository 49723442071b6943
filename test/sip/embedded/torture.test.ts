import { describe, expect, it } from 'vitest';
import type { SipCore } from '../../../sip/embedded/core/sip-core.ts';
import { createReception, type Reception } from '../../../sip/embedded/transport/reception.ts';
import type { Remote } from '../../../sip/embedded/transport/remote.ts';
import { SourceLimits } from '../../../sip/embedded/transport/source-limits.ts';
import {
  header,
  headers,
  parseMessage,
  parseNameAddr,
  parseVia,
  SipParseError,
  StreamFramer,
  serializeMessage,
} from '../../../sip/message/index.ts';
import * as fc from '../../properties.ts';
import { readTorture, type TortureMessage } from '../message/torture/read-torture.ts';
import { CoreBench } from './core-bench.ts';

const RFC_4475 = readTorture('rfc4475.txt');
const RFC_5118 = readTorture('rfc5118.txt');
const SOURCE: Remote = { transport: 'udp', host: '198.51.100.7', port: 5060, connectionId: null };
const METHODS: ReadonlySet<string> = new Set(['INVITE', 'OPTIONS', 'REGISTER', 'MESSAGE']);

describe('torture messages', () => {
  it('form a complete set', () => {
    expect(RFC_4475).toHaveLength(49);
    expect(RFC_5118).toHaveLength(11);
  });

  it.each(rows(RFC_4475))('%s (RFC 4475 §%s): %s', (_name, _section, _expected, message) => {
    expect(outcomeOf(message.bytes)).toBe(message.expected);
  });

  it.each(rows(RFC_5118))('%s (RFC 5118 §%s): %s', (_name, _section, _expected, message) => {
    expect(outcomeOf(message.bytes)).toBe(message.expected);
  });

  it.each(rows([...RFC_4475, ...RFC_5118].filter(({ expected }) => typeof expected === 'number')))(
    '%s (§%s): response %s copies Via, From, To, Call-ID and CSeq',
    (_name, _section, _expected, message) => {
      const { bench } = receiveAll([message.bytes]);
      const [response] = bench.sent;
      if (response === undefined) throw new Error('Nothing was sent');
      const asked = requestOf(message.bytes);
      expect(headers(response, 'via')).toHaveLength(headers(asked, 'via').length);
      for (const name of ['from', 'call-id', 'cseq']) expect(header(response, name)).toBe(header(asked, name));
      expect(header(response, 'to') ?? '').toContain(header(asked, 'to') ?? '');
    },
  );
});

describe('contents of parsed torture messages', () => {
  it('wsinv: folded lines, odd spacing, quoted pairs and several Via values', () => {
    const message = messageOf('wsinv');
    expect(parseNameAddr(header(message, 'from') ?? '')).toMatchObject({
      displayName: 'J Rosenberg \\"',
      params: new Map([['tag', '98asjd8']]),
    });
    expect(headers(message, 'via').map((via) => parseVia(via).host)).toEqual([
      '192.0.2.2',
      'spindle.example.com',
      '192.168.255.111',
    ]);
    expect(header(message, 'subject')).toBe('');
    expect(message.body).toHaveLength(150);
  });

  it('intmeth: every token character, and UTF-8 with byte order mark', () => {
    const message = messageOf('intmeth');
    expect(message).toMatchObject({ method: "!interesting-Method0123456789_*+`.%indeed'~" });
    expect(header(message, "extensionHeader-!.%*+_`'~")).toBe('\ufeff大停電');
    expect(header(message, 'call-id')).toBe('intmeth.word%ZK-!.*_+\'@word`~)(><:\\/"][?}{');
    const from = parseNameAddr(header(message, 'from') ?? '');
    expect(from.params.get("fromparam''~+*_!.-%")).toBe('работающий');
    expect(from.params.get('tag')).toBe("_token~1'+`*%!-.");
  });

  it('mpart01: a binary body including NULs', () => {
    const { body } = messageOf('mpart01');
    expect(body).toHaveLength(553);
    expect(body.subarray(-24).toString('latin1')).toBe('\r\n--7a9cbec02ceef655--\r\n');
    expect(body.includes(0)).toBe(true);
  });

  it('dblreq: the second request of a datagram, ignored', () => {
    const { bench } = receiveAll([bytesOf('dblreq')]);
    expect(bench.delivered).toHaveLength(1);
    expect(bench.delivered[0]?.message).toMatchObject({ method: 'REGISTER' });
  });

  it('unreason: a reason phrase in UTF-8', () => {
    expect(messageOf('unreason')).toMatchObject({
      statusCode: 200,
      reasonPhrase: '= 2**3 * 5**2 но сто девяносто девять - простое',
    });
  });

  it('bext01, invut and intmeth: rejections that list supported values', () => {
    expect(refusalHeader('bext01', 'unsupported')).toBe('nothingSupportsThis, nothingSupportsThisEither');
    expect(refusalHeader('invut', 'accept')).toContain('application/sdp');
    expect(refusalHeader('intmeth', 'allow')).toBe(
      'INVITE, ACK, BYE, CANCEL, OPTIONS, REGISTER, PRACK, MESSAGE, UPDATE',
    );
  });

  it('inv2543: an answerable call without Contact and tag', () => {
    const { bench } = receiveAll([bytesOf('inv2543')]);
    bench.respond(bench.transactionOf('INVITE'), 200);
    expect(bench.responses(200, 'INVITE')).toHaveLength(1);
    expect(bench.counts.dialogs).toBe(1);
  });
});

describe('any input', () => {
  const all = [...RFC_4475, ...RFC_5118].map(({ bytes }) => bytes);
  const truncated = fc
    .tuple(fc.constantFrom(...all), fc.double({ min: 0, max: 1, noNaN: true }))
    .map(([bytes, share]) => bytes.subarray(0, Math.floor(bytes.length * share)));
  const spliced = fc
    .tuple(truncated, fc.uint8Array({ maxLength: 40 }), truncated)
    .map(([head, noise, tail]) => Buffer.concat([head, noise, tail]));
  const random = fc.uint8Array({ maxLength: 2000 }).map((bytes) => Buffer.from(bytes));
  const hostile = fc.oneof(truncated, spliced, random);

  it('throws nothing and leaves nothing behind', () => {
    fc.assert(
      fc.property(fc.array(hostile, { minLength: 1, maxLength: 30 }), (datagrams) => {
        const { bench } = receiveAll(datagrams);
        // After all timers, only requests unanswered by the application remain.
        bench.isOpen = false;
        bench.core.abandon(bench.application);
        bench.clock.advance(64_000 * 2);
        expect(bench.counts.transactions).toEqual({ outgoing: 0, incoming: 0 });
        expect(bench.clock.pendingCount).toBe(0);
      }),
      { numRuns: 150 },
    );
  });

  it('makes a stream buffer one message at most, and throw parse errors only', () => {
    fc.assert(
      fc.property(fc.array(hostile, { minLength: 1, maxLength: 30 }), (chunks) => {
        const framer = new StreamFramer();
        try {
          for (const chunk of chunks) {
            for (const frame of framer.push(chunk)) if (frame.type === 'message') receiveAll([frame.bytes]);
          }
        } catch (error) {
          expect(error).toBeInstanceOf(SipParseError);
        }
      }),
      { numRuns: 150 },
    );
  });

  it('survives a write and a second parse unchanged if it parses', () => {
    fc.assert(
      fc.property(hostile, (bytes) => {
        let message: ReturnType<typeof parseMessage>;
        try {
          message = parseMessage(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(SipParseError);
          return;
        }
        expect(parseMessage(serializeMessage(message))).toEqual(message);
      }),
      { numRuns: 500, examples: [[Buffer.from('SIP/2.0 200 \0')]] },
    );
  });
});

function rows(messages: readonly TortureMessage[]): [string, string, number | string, TortureMessage][] {
  return messages.map((each) => [each.name, each.section, each.expected, each]);
}

function outcomeOf(bytes: Buffer): number | string {
  const { bench, reception } = receiveAll([bytes]);
  if (bench.delivered.length > 0) return 'delivered';
  const [answer] = bench.sent;
  if (answer === undefined) return reception.dump().limited === 0 ? 'dropped' : 'limited';
  return answer.kind === 'response' ? answer.statusCode : answer.method;
}

function receiveAll(datagrams: readonly Buffer[]): { bench: CoreBench; reception: Reception } {
  const bench = new CoreBench(undefined, METHODS);
  const { core }: { core: SipCore } = bench;
  const reception = createReception({
    listener: core,
    onBroken: (error, source) => core.onBroken(error, source),
    onFault: (error) => {
      throw error;
    },
    limits: new SourceLimits({ perSecond: 1000, burst: 1000 }),
  });
  for (const bytes of datagrams) reception.receive(bytes, SOURCE);
  return { bench, reception };
}

function bytesOf(name: string): Buffer {
  return RFC_4475.find((each) => each.name === name)?.bytes ?? Buffer.alloc(0);
}

function messageOf(name: string): ReturnType<typeof parseMessage> {
  return parseMessage(bytesOf(name));
}

/** Also for a request that fails to parse completely. */
function requestOf(bytes: Buffer): ReturnType<typeof parseMessage> {
  try {
    return parseMessage(bytes);
  } catch (error) {
    if (error instanceof SipParseError && error.request) return error.request;
    throw error;
  }
}

function refusalHeader(name: string, wanted: string): string | undefined {
  const [response] = receiveAll([bytesOf(name)]).bench.sent;
  return response && headers(response, wanted).join(', ');
}
