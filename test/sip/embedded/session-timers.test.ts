import { describe, expect, it } from 'vitest';
import { createRequest, header, tagOf } from '../../../sip/message/index.ts';
import { CoreBench } from './core-bench.ts';

/** Session timers (RFC 4028). */

const MINUTE = 60_000;

function agreed(value: string | null) {
  const bench = new CoreBench();
  const call = bench.invite();
  bench.answer(call.request, 200, 'peer-tag', { headers: value === null ? [] : [['Session-Expires', value]] });
  bench.inDialog(call.dialogId, 'ACK');
  // Lets the INVITE transactions finish.
  bench.clock.advance(MINUTE);
  return { bench, ...call, passMinutes: (count: number) => bench.clock.advance(count * MINUTE) };
}

/** Requests of the server itself. */
const ends = (bench: CoreBench) => bench.delivered.filter(({ transactionId }) => transactionId === 'unsolicited');

describe('session refreshed by the peer', () => {
  it('ends with BYE and its cause shortly before it expires', () => {
    const { bench, passMinutes } = agreed('600;refresher=uas');
    passMinutes(8);
    expect(bench.requests('BYE')).toEqual([]);
    passMinutes(1);
    expect(bench.requests('BYE').map((bye) => header(bye, 'reason'))).toContain(
      'SIP;cause=408;text="The session expired"',
    );
    expect(ends(bench)).toHaveLength(1);
    expect(bench.counts.dialogs).toBe(0);
  });

  it.each(['INVITE', 'UPDATE'])('continues after %s', (method) => {
    const { bench, request, passMinutes } = agreed('600;refresher=uas');
    passMinutes(8);
    bench.fromPeer(request, method, 1);
    bench.respond(bench.transactionOf(method), 200, [['Session-Expires', '600;refresher=uac']]);
    if (method === 'INVITE') bench.fromPeer(request, 'ACK', 1);
    passMinutes(9);
    expect(bench.requests('BYE')).toEqual([]);
    passMinutes(1);
    expect(ends(bench)).toHaveLength(1);
  });

  it('never expires after a request without a timer', () => {
    const { bench, request, passMinutes } = agreed('600;refresher=uas');
    bench.fromPeer(request, 'UPDATE', 1);
    bench.respond(bench.transactionOf('UPDATE'), 200);
    passMinutes(600);
    expect([bench.requests('BYE'), bench.counts.dialogs]).toEqual([[], 1]);
  });

  it('leaves no timer behind after hang-up', () => {
    const { bench, dialogId, passMinutes } = agreed('600;refresher=uas');
    bench.inDialog(dialogId, 'BYE');
    bench.answer(bench.requests('BYE')[0]!, 200);
    passMinutes(1);
    expect(bench.clock.pendingCount).toBe(0);
  });
});

describe('session refreshed locally', () => {
  it('sends UPDATE at half of its interval, repeatedly', () => {
    const { bench, passMinutes } = agreed('600;refresher=uac');
    passMinutes(3);
    expect(bench.requests('UPDATE')).toEqual([]);
    passMinutes(1);
    const [update] = bench.requests('UPDATE');
    expect(header(update!, 'session-expires')).toBe('600;refresher=uac');
    expect(header(update!, 'supported')).toBe('timer');
    bench.answer(update!, 200, '', { headers: [['Session-Expires', '300;refresher=uac']] });
    passMinutes(2);
    expect(bench.requests('UPDATE')).toHaveLength(1);
    bench.clock.advance(MINUTE / 2);
    expect(bench.requests('UPDATE')).toHaveLength(2);
    expect(bench.delivered.filter(({ message }) => message.kind === 'response')).toHaveLength(1);
  });

  it('retries once after a rejection and ends when it expires', () => {
    const { bench, passMinutes } = agreed('600;refresher=uac');
    passMinutes(4);
    bench.answer(bench.requests('UPDATE')[0]!, 500);
    passMinutes(1);
    bench.answer(bench.requests('UPDATE')[1]!, 500);
    expect(bench.requests('BYE')).toEqual([]);
    passMinutes(5);
    expect(ends(bench)).toHaveLength(1);
  });

  it.each([
    [401, 'UPDATE', []],
    [407, 'INVITE', [['Allow', 'INVITE, ACK, BYE']]],
  ] as const)('leaves it to the application after a %i to %s', (status, method, allow) => {
    const bench = new CoreBench();
    const { request, dialogId } = bench.invite();
    bench.answer(request, 200, 'peer-tag', { headers: [...allow, ['Session-Expires', '600;refresher=uac']] });
    bench.inDialog(dialogId, 'ACK');
    bench.clock.advance(5 * MINUTE);
    bench.answer(bench.requests(method).at(-1)!, status);
    expect(ends(bench)).toMatchObject([{ dialogId, message: { method } }]);
    bench.inDialog(dialogId, 'INVITE');
    bench.answer(bench.requests('INVITE').at(-1)!, 200, 'peer-tag', {
      headers: [['Session-Expires', '600;refresher=uas']],
    });
    bench.inDialog(dialogId, 'ACK');
    bench.clock.advance(6 * MINUTE);
    expect(bench.requests('BYE')).toEqual([]);
  });

  it.each([481, 408])('ends at once after %i', (status) => {
    const { bench, passMinutes } = agreed('600;refresher=uac');
    passMinutes(4);
    bench.answer(bench.requests('UPDATE')[0]!, status);
    expect(ends(bench)).toHaveLength(1);
  });
});

describe('peer without UPDATE', () => {
  const WITHOUT_UPDATE = ['Allow', 'INVITE, ACK, BYE, CANCEL, INFO'] as const;

  /** A call with such a peer, five minutes after its answer. */
  function refreshed(allow: readonly (readonly [string, string])[]) {
    const bench = new CoreBench();
    const call = bench.invite();
    bench.answer(call.request, 200, 'peer-tag', { headers: [...allow, ['Session-Expires', '600;refresher=uac']] });
    bench.inDialog(call.dialogId, 'ACK');
    bench.clock.advance(5 * MINUTE);
    return { bench, ...call };
  }

  it('receives a re-INVITE with the same SDP, acknowledged by the server', () => {
    const { bench, request } = refreshed([WITHOUT_UPDATE]);
    expect(bench.requests('UPDATE')).toEqual([]);
    const reinvite = bench.requests('INVITE').at(-1)!;
    expect(reinvite.body.toString()).toBe(request.body.toString());
    expect(header(reinvite, 'content-type')).toBe('application/sdp');
    expect(header(reinvite, 'session-expires')).toBe('600;refresher=uac');
    const deliveredBefore = bench.delivered.length;
    bench.answer(reinvite, 200, 'peer-tag', { headers: [['Session-Expires', '600;refresher=uac']] });
    expect(header(bench.requests('ACK').at(-1)!, 'cseq')).toBe(`${Number.parseInt(header(reinvite, 'cseq')!, 10)} ACK`);
    bench.clock.advance(5 * MINUTE);
    expect(bench.delivered.length).toBe(deliveredBefore);
    expect(bench.requests('BYE')).toEqual([]);
    expect(bench.requests('INVITE').at(-1)).not.toBe(reinvite);
  });

  it.each([
    {
      what: 'receives an offer of the application after it moved its media in the answer',
      answered: 'v=0\r\no=- 1 2\r\nc=IN IP4 192.0.2.8\r\n',
      isOffered: true,
    },
    {
      what: 'receives no further offer if its answer has only another version',
      answered: 'v=0\r\no=- 1 2\r\nc=IN IP4 192.0.2.7\r\n',
      isOffered: false,
    },
    { what: 'receives no further offer if its answer has no SDP', answered: '', isOffered: false },
  ])('$what', ({ answered, isOffered }) => {
    const bench = new CoreBench();
    const { request, dialogId } = bench.invite();
    const headers = [
      WITHOUT_UPDATE,
      ['Session-Expires', '600;refresher=uac'],
      ['Content-Type', 'application/sdp'],
    ] as const;
    bench.answer(request, 200, 'peer-tag', { headers, body: 'v=0\r\no=- 1 1\r\nc=IN IP4 192.0.2.7\r\n' });
    bench.inDialog(dialogId, 'ACK');
    bench.clock.advance(5 * MINUTE);
    const acks = bench.requests('ACK').length;
    bench.answer(bench.requests('INVITE').at(-1)!, 200, 'peer-tag', { headers, body: answered });
    expect(bench.requests('ACK')).toHaveLength(acks + 1);
    expect(ends(bench)).toMatchObject(isOffered ? [{ dialogId, message: { method: 'INVITE' } }] : []);
    expect(bench.inDialog(dialogId, 'INVITE')).toMatchObject({ ok: true });
  });

  it.each([405, 501])('receives the re-INVITE at once after %i', (status) => {
    const { bench } = refreshed([]);
    const before = bench.requests('INVITE').length;
    bench.answer(bench.requests('UPDATE')[0]!, status);
    expect(bench.requests('INVITE')).toHaveLength(before + 1);
  });

  it('receives the SDP of the last re-INVITE of the application', () => {
    const { bench, dialogId } = refreshed([]);
    const message = createRequest({ method: 'INVITE', uri: 'sip:placeholder', body: 'v=0\r\nlater\r\n' });
    bench.execute({ type: 'in-dialog', dialogId, message });
    bench.answer(bench.requests('INVITE').at(-1)!, 200, 'peer-tag', {
      headers: [WITHOUT_UPDATE, ['Session-Expires', '600;refresher=uac']],
    });
    bench.inDialog(dialogId, 'ACK');
    bench.clock.advance(5 * MINUTE);
    expect(bench.requests('INVITE').at(-1)!.body.toString()).toBe('v=0\r\nlater\r\n');
  });

  it('still receives UPDATE with encrypted media, whose keys a re-INVITE could change', () => {
    const { bench, dialogId } = refreshed([]);
    const body = 'v=0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:x\r\n';
    bench.execute({
      type: 'in-dialog',
      dialogId,
      message: createRequest({ method: 'INVITE', uri: 'sip:placeholder', body }),
    });
    bench.answer(bench.requests('INVITE').at(-1)!, 200, 'peer-tag', {
      headers: [WITHOUT_UPDATE, ['Session-Expires', '600;refresher=uac']],
    });
    bench.inDialog(dialogId, 'ACK');
    const [invites, updates] = [bench.requests('INVITE').length, bench.requests('UPDATE').length];
    bench.clock.advance(5 * MINUTE);
    expect(bench.requests('INVITE')).toHaveLength(invites);
    expect(bench.requests('UPDATE').length).toBeGreaterThan(updates);
  });

  it.each([405, 501])('receives an offer of the application after %i with encrypted media', (status) => {
    const bench = new CoreBench();
    const body = 'v=0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:x\r\n';
    const { request, dialogId } = bench.invite(body);
    const agree = (invite: typeof request, refresher: string) =>
      bench.answer(invite, 200, 'peer-tag', { headers: [['Session-Expires', `600;refresher=${refresher}`]] });
    agree(request, 'uac');
    bench.inDialog(dialogId, 'ACK');
    bench.clock.advance(5 * MINUTE);
    bench.answer(bench.requests('UPDATE')[0]!, status);
    expect(ends(bench)).toMatchObject([{ dialogId, message: { method: 'UPDATE' } }]);
    bench.inDialog(dialogId, 'INVITE');
    agree(bench.requests('INVITE').at(-1)!, 'uas');
    bench.inDialog(dialogId, 'ACK');
    bench.clock.advance(6 * MINUTE);
    expect(bench.requests('BYE')).toEqual([]);
  });

  it('receives another re-INVITE after a 491, before a session of 90 seconds ends', () => {
    const bench = new CoreBench();
    const { request, dialogId } = bench.invite();
    const headers = [WITHOUT_UPDATE, ['Session-Expires', '90;refresher=uac'] as const];
    bench.answer(request, 200, 'peer-tag', { headers });
    bench.inDialog(dialogId, 'ACK');
    bench.clock.advance(45_000);
    bench.answer(bench.requests('INVITE').at(-1)!, 491);
    const before = bench.requests('INVITE').length;
    bench.clock.advance(10_000);
    expect(bench.requests('INVITE')).toHaveLength(before + 1);
  });

  it('ends the session by 481', () => {
    const { bench } = refreshed([WITHOUT_UPDATE]);
    bench.answer(bench.requests('INVITE').at(-1)!, 481);
    expect(ends(bench)).toHaveLength(1);
  });

  it('keeps the session after a 491 and receives another re-INVITE', () => {
    const { bench } = refreshed([WITHOUT_UPDATE]);
    const first = bench.requests('INVITE').at(-1)!;
    bench.answer(first, 491);
    bench.clock.advance(MINUTE);
    const second = bench.requests('INVITE').at(-1)!;
    expect(header(second, 'cseq')).not.toBe(header(first, 'cseq'));
    bench.answer(second, 200, 'peer-tag', { headers: [['Session-Expires', '600;refresher=uac']] });
    bench.clock.advance(4 * MINUTE);
    expect(bench.requests('BYE')).toEqual([]);
  });
});

describe('own re-INVITE', () => {
  it('times out after 64 * T1 with only a provisional response, and frees the peer to re-INVITE', () => {
    const { bench, request, dialogId } = agreed(null);
    bench.inDialog(dialogId, 'INVITE');
    bench.answer(bench.requests('INVITE').at(-1)!, 180);
    bench.clock.advance(MINUTE);
    const last = bench.delivered.at(-1)!.message;
    expect(last.kind === 'response' && last.statusCode).toBe(408);
    bench.fromPeer(request, 'INVITE', 1);
    expect(bench.responses(491, 'INVITE')).toEqual([]);
  });
});

describe('INVITE of the peer', () => {
  it('may require session timers (RFC 4028 section 7.1)', () => {
    const bench = new CoreBench();
    bench.fromStranger('INVITE', 'one', { headers: [['Require', 'timer']] });
    expect(bench.responses(420, 'INVITE')).toEqual([]);
    expect(bench.delivered).toHaveLength(1);
  });
});

describe('answer to an INVITE', () => {
  it('without a timer never expires', () => {
    const { bench, passMinutes } = agreed(null);
    passMinutes(6000);
    expect(bench.requests('BYE')).toEqual([]);
  });

  it.each(['0', '1;refresher=uac', '30'])('with %s counts as the minimum of 90 seconds', (value) => {
    const bench = new CoreBench();
    const { request, dialogId } = bench.invite();
    bench.answer(request, 200, 'peer-tag', { headers: [['Session-Expires', value]] });
    bench.inDialog(dialogId, 'ACK');
    bench.clock.advance(44_000);
    expect([bench.requests('UPDATE'), bench.requests('BYE')]).toEqual([[], []]);
  });

  it.each(['', 'soon', '-1', '90 seconds'])('with %j in place of a number starts no timer', (value) => {
    const { bench, passMinutes } = agreed(value);
    passMinutes(600);
    expect(bench.requests('BYE')).toEqual([]);
  });
});

describe('reliable provisional response', () => {
  it('arrives once and in order', () => {
    const bench = new CoreBench();
    const { request } = bench.invite();
    for (const sequence of [7, 7, 9, 8, 8, 9]) {
      bench.answer(request, 183, 'peer-tag', {
        headers: [
          ['Require', '100rel'],
          ['RSeq', `${sequence}`],
        ],
      });
    }
    const delivered = bench.delivered.map(({ message }) => header(message, 'rseq'));
    expect(delivered).toEqual(['7', '8', '9']);
  });

  it('gets its PRACK at the fork that sent it', () => {
    const bench = new CoreBench();
    const { request, dialogId } = bench.invite();
    const reliable = [
      ['Require', '100rel'],
      ['RSeq', '7'],
    ] as const;
    bench.answer(request, 183, 'first', { headers: reliable });
    bench.answer(request, 183, 'second', { headers: reliable });
    for (let count = 0; count < 2; count++) {
      const headers = [['RAck', `7 ${header(request, 'cseq')}`]] as const;
      const message = createRequest({ method: 'PRACK', uri: 'sip:placeholder', headers });
      bench.execute({ type: 'in-dialog', dialogId, message });
    }
    expect(bench.requests('PRACK').map((prack) => tagOf(header(prack, 'to')))).toEqual(['first', 'second']);
  });
});
