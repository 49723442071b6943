import { describe, expect, it } from 'vitest';
import { sipTimers } from '../../../sip/embedded/sip-timers.ts';
import { ClientTransaction } from '../../../sip/embedded/transactions/client.ts';
import { InviteClientTransaction } from '../../../sip/embedded/transactions/invite-client.ts';
import { InviteServerTransaction } from '../../../sip/embedded/transactions/invite-server.ts';
import { ServerTransaction } from '../../../sip/embedded/transactions/server.ts';
import {
  createRequest,
  createResponse,
  header,
  type SipMessage,
  type SipRequest,
  setHeader,
} from '../../../sip/message/index.ts';
import { SimulatedClock } from './simulated-clock.ts';

describe('INVITE client transaction (RFC 3261 §17.1.1, RFC 6026)', () => {
  it('repeats the INVITE at 0.5, 1.5, 3.5, 7.5, 15.5 and 31.5 s and times out at 32 s', () => {
    const { clock, log, sentAtMs } = inviteClient();
    clock.advance(60_000);
    expect(sentAtMs).toEqual([0, 500, 1500, 3500, 7500, 15_500, 31_500]);
    expect(log.slice(-2)).toEqual(['terminated at 32000', 'timeout at 32000']);
    expect(clock.pendingCount).toBe(0);
  });

  it('sends once over TCP, and still times out', () => {
    const { clock, log, sentAtMs } = inviteClient({ reliable: true });
    clock.advance(60_000);
    expect(sentAtMs).toEqual([0]);
    expect(log).toContain('timeout at 32000');
  });

  it('stops repeating at the first 1xx, can be cancelled from then on, and rings without limit', () => {
    const { clock, log, sentAtMs, transaction } = inviteClient();
    clock.advance(600);
    transaction.receive(response(100));
    transaction.receive(response(180));
    clock.advance(600_000);
    expect(sentAtMs).toEqual([0, 500]);
    expect(log).toEqual(['100 at 600', 'cancellable at 600', '180 at 600']);
  });

  it('acknowledges every rejection, delivers it once and ends after Timer D', () => {
    const { clock, log, sent, transaction } = inviteClient();
    transaction.receive(response(486));
    transaction.receive(response(486));
    clock.advance(31_999);
    transaction.receive(response(486));
    expect(sent.map(({ method }) => method)).toEqual(['INVITE', 'ACK', 'ACK', 'ACK']);
    expect(log).toEqual(['486 at 0']);
    clock.advance(1);
    expect(log).toEqual(['486 at 0', 'terminated at 32000']);
    const ack = sent[1] as SipRequest;
    expect(header(ack, 'via')).toBe(header(REQUEST, 'via'));
    expect(header(ack, 'to')).toBe('<sip:b@b>;tag=486');
    expect(header(ack, 'cseq')).toBe('7 ACK');
    expect(header(ack, 'route')).toBe('<sip:proxy;lr>');
  });

  it('delivers every 2xx of any fork for 64 * T1', () => {
    const { clock, log, transaction } = inviteClient();
    transaction.receive(response(200));
    clock.advance(1000);
    transaction.receive(response(200));
    transaction.receive(response(486));
    transaction.receive(response(180));
    clock.advance(31_000);
    transaction.receive(response(200));
    expect(log).toEqual(['200 at 0', '200 at 1000', 'terminated at 32000']);
  });

  it('abandons a cancelled INVITE 64 * T1 after the CANCEL', () => {
    const { clock, log, transaction } = inviteClient();
    transaction.receive(response(180));
    clock.advance(100_000);
    transaction.expectEnd();
    clock.advance(32_000);
    expect(log.slice(-2)).toEqual(['terminated at 132000', 'timeout at 132000']);
  });

  it('fails at once with its transport, unless it was answered', () => {
    const failing = inviteClient();
    failing.transaction.transportFailed();
    failing.transaction.transportFailed();
    expect(failing.log).toEqual(['terminated at 0', 'transport at 0']);
    const answered = inviteClient();
    answered.transaction.receive(response(200));
    answered.transaction.transportFailed();
    expect(answered.log).toEqual(['200 at 0']);
  });
});

describe('non-INVITE client transaction (RFC 3261 §17.1.2)', () => {
  it('repeats with doubling gaps of at most T2 and times out at 32 s', () => {
    const { clock, log, sentAtMs } = client();
    clock.advance(60_000);
    expect(sentAtMs).toEqual([0, 500, 1500, 3500, 7500, 11_500, 15_500, 19_500, 23_500, 27_500, 31_500]);
    expect(log).toEqual(['terminated at 32000', 'timeout at 32000']);
  });

  it('repeats every T2 after a provisional response', () => {
    const { clock, sentAtMs, transaction } = client();
    clock.advance(600);
    transaction.receive(response(100));
    clock.advance(10_000);
    expect(sentAtMs).toEqual([0, 500, 1500, 5500, 9500]);
  });

  it('delivers one final response and absorbs others for T4', () => {
    const { clock, log, transaction } = client();
    transaction.receive(response(200));
    transaction.receive(response(200));
    clock.advance(5000);
    expect(log).toEqual(['200 at 0', 'terminated at 5000']);
  });
});

describe('INVITE server transaction (RFC 3261 §17.2.1, RFC 6026)', () => {
  it('repeats its last provisional response for a repeated INVITE', () => {
    const { sent, transaction } = inviteServer();
    transaction.receiveAgain();
    transaction.respond(response(100));
    transaction.respond(response(180));
    transaction.receiveAgain();
    expect(sent.map(statusOf)).toEqual([100, 180, 180]);
  });

  it('repeats a rejection until its ACK, then absorbs ACKs for T4', () => {
    const { clock, log, sentAtMs, transaction } = inviteServer();
    transaction.respond(response(486));
    clock.advance(8000);
    transaction.receiveAck();
    transaction.receiveAck();
    clock.advance(60_000);
    expect(sentAtMs).toEqual([0, 500, 1500, 3500, 7500]);
    expect(log).toEqual(['terminated at 13000']);
  });

  it('abandons an unacknowledged rejection after 64 * T1', () => {
    const { clock, log } = inviteServer((transaction) => transaction.respond(response(486)));
    clock.advance(60_000);
    expect(log).toEqual(['terminated at 32000']);
  });

  it('repeats a 2xx even over TCP, with gaps of at most T2, and reports a missing ACK', () => {
    const { clock, log, sentAtMs } = inviteServer((transaction) => transaction.respond(response(200)), true);
    clock.advance(60_000);
    expect(sentAtMs).toEqual([0, 500, 1500, 3500, 7500, 11_500, 15_500, 19_500, 23_500, 27_500, 31_500]);
    expect(log).toEqual(['not acknowledged at 32000', 'terminated at 32000']);
  });

  it('repeats the 2xx for two more seconds after its connection was closed', () => {
    const closing = (isAcknowledged: boolean) => {
      const server = inviteServer((transaction) => transaction.respond(response(200)), true);
      for (const waitMs of [500, 500, 100]) {
        server.transaction.connectionLost();
        server.clock.advance(waitMs);
      }
      if (isAcknowledged) server.transaction.acknowledged();
      server.clock.advance(60_000);
      return server;
    };
    expect(closing(false).log).toEqual(['not acknowledged at 2000', 'terminated at 2000']);
    expect(closing(false).sentAtMs).toEqual([0, 500, 1500]);
    expect(closing(true).log).toEqual(['terminated at 2000']);
  });

  it('keeps repeating the 2xx of a re-INVITE whose connection was closed', () => {
    const { clock, log, options } = recorder<SipMessage>();
    const reinvite = { ...REQUEST, headers: [...REQUEST.headers] };
    setHeader(reinvite, 'To', '<sip:b@b>;tag=2');
    const transaction = new InviteServerTransaction({ ...options, request: reinvite, reliable: true });
    transaction.respond(response(200));
    transaction.connectionLost();
    clock.advance(60_000);
    expect(log).toEqual(['not acknowledged at 32000', 'terminated at 32000']);
  });

  it('stops repeating a 2xx after its ACK, and absorbs repeated INVITEs', () => {
    const { clock, log, sentAtMs, transaction } = inviteServer((each) => each.respond(response(200)));
    clock.advance(600);
    transaction.acknowledged();
    transaction.receiveAgain();
    clock.advance(60_000);
    expect(sentAtMs).toEqual([0, 500]);
    expect(log).toEqual(['terminated at 32000']);
  });

  it('sends no second final response', () => {
    const { sent, transaction } = inviteServer((each) => each.respond(response(200)));
    expect(transaction.respond(response(486))).toBe(false);
    expect(transaction.respond(response(180))).toBe(false);
    expect(sent.map(statusOf)).toEqual([200]);
  });
});

describe('non-INVITE server transaction (RFC 3261 §17.2.2)', () => {
  it('repeats its final response for repeated requests for 64 * T1', () => {
    const { clock, log, sent, transaction } = server();
    transaction.receiveAgain();
    transaction.respond(response(200));
    transaction.receiveAgain();
    expect(transaction.respond(response(500))).toBe(false);
    clock.advance(32_000);
    expect(sent.map(statusOf)).toEqual([200, 200]);
    expect(log).toEqual(['terminated at 32000']);
  });

  it('ends if it is never answered', () => {
    const { clock, log } = server();
    clock.advance(64_000);
    expect(log).toEqual(['terminated at 64000']);
  });
});

const REQUEST = createRequest({
  method: 'INVITE',
  uri: 'sip:b@b',
  headers: [
    ['Via', 'SIP/2.0/UDP a;branch=z9hG4bK1'],
    ['Route', '<sip:proxy;lr>'],
    ['From', '<sip:a@a>;tag=1'],
    ['To', '<sip:b@b>'],
    ['Call-ID', 'c'],
    ['CSeq', '7 INVITE'],
  ],
});

function response(statusCode: number) {
  return createResponse({ statusCode, headers: [['To', `<sip:b@b>;tag=${statusCode}`]] });
}

function statusOf(message: SipMessage): number {
  return message.kind === 'response' ? message.statusCode : 0;
}

function recorder<Sent extends SipMessage>() {
  const clock = new SimulatedClock();
  const log: string[] = [];
  const sent: Sent[] = [];
  const sentAtMs: number[] = [];
  const note = (what: string | number) => () => log.push(`${what} at ${clock.nowMs}`);
  const options = {
    request: REQUEST,
    clock,
    timers: sipTimers(),
    send: (message: Sent) => {
      sent.push(message);
      sentAtMs.push(clock.nowMs);
    },
    onResponse: (message: SipMessage) => note(statusOf(message))(),
    onFailure: (why: string) => note(why)(),
    onCancellable: note('cancellable'),
    onNotAcknowledged: note('not acknowledged'),
    onTerminated: note('terminated'),
  };
  return { clock, log, sent, sentAtMs, options };
}

function inviteClient({ reliable = false } = {}) {
  const record = recorder<SipRequest>();
  const transaction = new InviteClientTransaction({ ...record.options, reliable });
  transaction.start();
  return { ...record, transaction };
}

function client() {
  const record = recorder<SipRequest>();
  const transaction = new ClientTransaction({ ...record.options, reliable: false });
  transaction.start();
  return { ...record, transaction };
}

function inviteServer(act: (transaction: InviteServerTransaction) => void = () => {}, reliable = false) {
  const record = recorder<SipMessage>();
  const transaction = new InviteServerTransaction({ ...record.options, reliable });
  act(transaction);
  return { ...record, transaction };
}

function server() {
  const record = recorder<SipMessage>();
  return { ...record, transaction: new ServerTransaction({ ...record.options, reliable: false }) };
}
