import { once } from 'node:events';
import net from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { parseCommand } from '../../../sip/embedded/control/commands.ts';
import { ControlFrameError, encodeFrame, FrameReader } from '../../../sip/embedded/control/frames.ts';
import { type EmbeddedSipServer, startEmbeddedSipServer } from '../../../sip/embedded/embedded-sip-server.ts';
import { header } from '../../../sip/message/index.ts';
import * as fc from '../../properties.ts';
import { Harness, SECRET, untilCounts, untilRouted } from './server-harness.ts';
import { SDP } from './sip-peer.ts';

const harness = new Harness();
afterEach(() => harness.closeAll());

describe('control port', () => {
  it('accepts the right secret and reports its SIP addresses', async () => {
    const { server } = await harness.start();
    const client = await openClient(server);
    client.send(`1|authenticate|${SECRET}|tag`);
    const hostPorts = `udp/127.0.0.1:${server.sipPort},tcp/127.0.0.1:${server.sipPort}`;
    expect(await client.reply()).toBe(`response|1|OK|${hostPorts}|v0.9.10|${hostPorts}`);
    client.send('2|ping');
    expect(await client.reply()).toBe('response|2|OK|pong');
    client.send('3|route|cdr:start');
    expect(await client.reply()).toBe('response|3|OK');
    client.send('4|proxy|x');
    expect(await client.reply()).toBe('response|4|NOK|proxy is not supported');
    client.send('5|sip||\r\nnonsense\r\n\r\n');
    expect(await client.reply()).toBe('response|5|NOK|invalid sip message');
  });

  it('rejects a wrong secret and closes', async () => {
    const { server } = await harness.start();
    const client = await openClient(server);
    client.send('1|authenticate|guess|');
    expect(await client.reply()).toBe('response|1|NO|incorrect secret');
    await client.closed;
  });

  it.each(['1|route|invite', '1|ping', '1|sip||\r\nOPTIONS sip:a@127.0.0.1:9 SIP/2.0\r\n\r\n'])(
    'rejects %j before authentication and closes',
    async (command) => {
      const { server } = await harness.start();
      const client = await openClient(server);
      client.send(command);
      expect(await client.reply()).toBe('response|1|NOK|not authenticated');
      await client.closed;
    },
  );

  it('ignores commands after a rejected one in the same packet', async () => {
    const { server } = await harness.start();
    const peer = await harness.peer();
    const client = await openClient(server);
    const sip = `2|sip||\r\nOPTIONS ${peer.uri} SIP/2.0\r\n\r\n`;
    client.socket.write(Buffer.concat([encodeFrame('1|ping', null), encodeFrame(sip, null)]));
    expect(await client.reply()).toBe('response|1|NOK|not authenticated');
    await client.closed;
    expect(peer.inbox).toEqual([]);
  });

  it.each([
    ['no length', 'hello world'],
    ['an empty length', '#x'],
    ['a length of zero', '0#'],
    ['a negative length', '-5#abcde'],
    ['an endless length', '9'.repeat(50)],
    ['an oversized frame before authentication', '99999#'],
    ['no id', '5#hello'],
  ])('closes on a frame with %s', async (_what, bytes) => {
    const { server } = await harness.start();
    const client = await openClient(server);
    client.socket.write(bytes);
    await client.closed;
  });

  it('survives any bytes of a stranger', async () => {
    const { server } = await harness.start();
    for (const bytes of fc.sample(fc.uint8Array({ minLength: 1, maxLength: 400 }), 40)) {
      const client = await openClient(server);
      client.socket.end(bytes);
      await client.closed;
    }
    expect(await server.dump()).toMatchObject({ core: { dialogs: 0 } });
  });

  it('ends the calls of a client that disconnected', async () => {
    const { server, srf } = await harness.start();
    const peer = await harness.peer();
    const ringing = await harness.peer();
    const caller = await harness.peer();
    srf.invite((_request, response) => response.send(180));
    await untilRouted(server, 'invite');
    const calling = srf.createUAC(peer.uri, { localSdp: SDP });
    peer.reply(await peer.request('INVITE'), 200, { body: SDP });
    await peer.request('ACK');
    await calling;
    srf.createUAC(ringing.uri, { localSdp: SDP }).catch(() => {});
    const invite = await ringing.request('INVITE');
    ringing.reply(invite, 180);
    caller.send(caller.make('INVITE', { callId: 'late', body: SDP, port: server.sipPort }), server.sipPort);
    await caller.response(180);

    srf.disconnect();
    peer.reply(await peer.request('BYE'), 200, { contact: null });
    ringing.reply(await ringing.request('CANCEL'), 200, { contact: null });
    ringing.reply(invite, 487, { contact: null });
    expect(header(await caller.response(503), 'cseq')).toBe('1 INVITE');
    await untilCounts(server, (core) => core.dialogs === 0 && core.requestsUnanswered === 0);
  });

  it('ends a call that is answered after its client disconnected', async () => {
    const { server, srf } = await harness.start();
    const peer = await harness.peer();
    srf.createUAC(peer.uri, { localSdp: SDP }).catch(() => {});
    const invite = await peer.request('INVITE');
    srf.disconnect();
    await untilCounts(server, () => true);
    peer.reply(invite, 200, { body: SDP });
    await peer.request('ACK');
    peer.reply(await peer.request('BYE'), 200, { contact: null });
    await untilCounts(server, ({ dialogs }) => dialogs === 0);
  });

  it('hangs up remaining calls when the server stops', async () => {
    const { server, srf } = await harness.start();
    const peer = await harness.peer();
    const calling = srf.createUAC(peer.uri, { localSdp: SDP });
    peer.reply(await peer.request('INVITE'), 200, { body: SDP });
    await peer.request('ACK');
    await calling;
    await server.close();
    expect(header(await peer.request('BYE'), 'reason')).toContain('cause=503');
  });

  it('closes the connection when the server stops', async () => {
    const exits: (Error | null)[] = [];
    const { server } = await harness.start({ onExit: (error) => exits.push(error) });
    const client = await openClient(server);
    client.send(`1|authenticate|${SECRET}|`);
    await client.reply();
    await server.close();
    await client.closed;
    await server.close();
    expect(exits).toEqual([null]);
    expect(await server.dump()).toBeNull();
  });
});

describe('startEmbeddedSipServer', () => {
  it('rejects a port in use, for UDP and TCP', async () => {
    const { server } = await harness.start();
    for (const transport of ['udp', 'tcp'] as const) {
      const starting = startEmbeddedSipServer({
        sipHost: '127.0.0.1',
        sipPort: server.sipPort,
        transports: [transport],
        secret: SECRET,
        signal: new AbortController().signal,
      });
      await expect(starting).rejects.toMatchObject({ code: 'EADDRINUSE' });
    }
  });

  it('stops with its owner', async () => {
    const owner = new AbortController();
    const { promise: exited, resolve } = Promise.withResolvers<Error | null>();
    const options = { sipHost: '127.0.0.1', sipPort: 0, transports: ['udp'] as const, secret: SECRET };
    const server = await startEmbeddedSipServer({ ...options, signal: owner.signal, onExit: resolve });
    const client = await openClient(server);
    owner.abort();
    expect(await exited).toBeNull();
    await client.closed;
    await expect(startEmbeddedSipServer({ ...options, signal: owner.signal })).rejects.toThrow();
  });
});

describe('FrameReader', () => {
  it('extracts the same payloads for any chunks', () => {
    const payloads = fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }), {
      minLength: 1,
      maxLength: 5,
    });
    fc.assert(
      fc.property(payloads, fc.integer({ min: 1, max: 9 }), (texts, step) => {
        const stream = Buffer.concat(texts.map((text) => encodeFrame(text, null)));
        const reader = new FrameReader(1000);
        const found: string[] = [];
        for (let at = 0; at < stream.length; at += step) {
          reader.push(stream.subarray(at, at + step), (payload) => found.push(payload.toString()));
        }
        expect(found).toEqual(texts);
      }),
    );
  });

  it('throws ControlFrameError only', () => {
    const digits = fc.string({ unit: fc.constantFrom('0', '1', '9', '#', 'x', '\r'), maxLength: 30 });
    fc.assert(
      fc.property(digits, (text) => {
        try {
          new FrameReader(100).push(Buffer.from(text), (payload) => parseCommand(payload));
        } catch (error) {
          expect(error).toBeInstanceOf(ControlFrameError);
        }
      }),
    );
  });
});

interface RawClient {
  socket: net.Socket;
  send(payload: string): void;
  reply(): Promise<string>;
  closed: Promise<void>;
}

async function openClient(server: EmbeddedSipServer): Promise<RawClient> {
  const socket = net.connect(server.controlPort, server.controlHost);
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  socket.on('error', () => {});
  const reader = new FrameReader(1_000_000);
  const payloads: string[] = [];
  const waiting: ((payload: string) => void)[] = [];
  socket.on('data', (chunk) =>
    reader.push(chunk, (payload) => {
      const text = payload.toString().replace(/^[^|]*\|/, '');
      const waiter = waiting.shift();
      if (waiter) waiter(text);
      else payloads.push(text);
    }),
  );
  await once(socket, 'connect');
  harness.onClose(async () => void socket.destroy());
  return {
    socket,
    closed,
    send: (payload) => socket.write(encodeFrame(payload, null)),
    reply() {
      const ready = payloads.shift();
      return ready === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(ready);
    },
  };
}
