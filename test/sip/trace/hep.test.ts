import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { describe, expect, it, onTestFinished } from 'vitest';
import { hepDatagram } from '../../../sip/trace/hep.ts';
import { openHepSender } from '../../../sip/trace/hep-sender.ts';
import type { CallMessage } from '../../../sip/trace/wire-message.ts';
import { untilTruthy } from '../../eventually.ts';
import * as fc from '../../properties.ts';

const MESSAGE: CallMessage = {
  ...{ callId: 'c1', leg: 'agent', sipCallId: 'a', atMs: 1_767_323_045_678, direction: 'sent', transport: 'udp' },
  ...{ local: { host: '192.0.2.1', port: 5060 }, remote: { host: '198.51.100.7', port: 5080 }, text: 'BYE' },
};

/** Chunks of a datagram by type, with validated lengths. */
function chunksOf(datagram: Buffer): Map<number, Buffer> {
  expect(datagram.toString('latin1', 0, 4)).toBe('HEP3');
  expect(datagram.readUInt16BE(4)).toBe(datagram.length);
  const chunks = new Map<number, Buffer>();
  let at = 6;
  while (at < datagram.length) {
    expect(datagram.readUInt16BE(at)).toBe(0);
    const length = datagram.readUInt16BE(at + 4);
    chunks.set(datagram.readUInt16BE(at + 2), datagram.subarray(at + 6, at + length));
    at += length;
  }
  expect(at).toBe(datagram.length);
  return chunks;
}

async function startCollector(): Promise<{ socket: Socket; port: number; received: Buffer[] }> {
  const socket = createSocket('udp4');
  const received: Buffer[] = [];
  socket.on('message', (bytes) => received.push(bytes));
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  onTestFinished(() => void socket.close());
  return { socket, port: socket.address().port, received };
}

const silent = { warn() {} };

describe('HEP3 datagram', () => {
  it('matches the standard byte for byte', () => {
    expect(hepDatagram(MESSAGE, 2_001)?.toString('hex')).toBe(
      [
        '48455033006e',
        ...['00000001000702', '00000002000711', '00000003000ac0000201', '00000004000ac6336407'],
        ...['00000007000813c4', '00000008000813d8', '00000009000a695735a5', '0000000a000a000a5870'],
        ...['0000000b000701', '0000000c000a000007d1', '0000001100086331', '0000000f0009425945'],
      ].join(''),
    );
  });

  it('holds any message, of either family and direction', () => {
    const host = fc.oneof(fc.ipV4(), fc.ipV6());
    const address = fc.option(fc.record({ host, port: fc.integer({ min: 0, max: 65_535 }) }), { nil: null });
    const text = fc.uint8Array({ maxLength: 3_000 }).map((bytes) => Buffer.from(bytes).toString('latin1'));
    fc.assert(
      fc.property(address, address, text, fc.boolean(), (local, remote, content, isSent) => {
        const direction = isSent ? 'sent' : 'received';
        const datagram = hepDatagram({ ...MESSAGE, local, remote, text: content, direction, transport: 'tcp' }, 1)!;
        const chunks = chunksOf(datagram);
        const family = chunks.get(1)?.readUInt8(0);
        expect(chunks.get(family === 10 ? 5 : 3)?.length).toBe(family === 10 ? 16 : 4);
        const [source, destination] = isSent ? [local, remote] : [remote, local];
        expect(chunks.get(7)?.readUInt16BE(0)).toBe(source?.port ?? 0);
        expect(chunks.get(8)?.readUInt16BE(0)).toBe(destination?.port ?? 0);
        expect(chunks.get(2)?.readUInt8(0)).toBe(6);
        expect(chunks.get(15)?.toString('latin1')).toBe(content);
      }),
    );
    expect(hepDatagram({ ...MESSAGE, text: 'x'.repeat(65_500) }, 1)).toBeNull();
  });
});

describe('HEP sender', () => {
  it("sends each message once, the first ones after the collector's name resolves", async () => {
    const { port, received } = await startCollector();
    const name = Promise.withResolvers<{ address: string; family: number }>();
    await using sender = openHepSender({
      ...{ collector: { host: 'homer.example', port }, captureId: 7, logger: silent },
      lookup: () => name.promise,
    });
    sender.send(MESSAGE);
    name.resolve({ address: '127.0.0.1', family: 4 });
    await untilTruthy(() => received.length === 1);
    sender.send({ ...MESSAGE, text: 'ACK' });
    await untilTruthy(() => received.length === 2);
    expect(received.map((bytes) => chunksOf(bytes).get(15)?.toString())).toEqual(['BYE', 'ACK']);
    expect(chunksOf(received[0]!).get(17)?.toString()).toBe('c1');
  });

  it('never throws for a missing collector or an oversized message', async () => {
    const warnings: string[] = [];
    await using lost = openHepSender({
      ...{ collector: { host: 'homer.invalid', port: 9060 }, captureId: 7 },
      logger: { warn: (_fields, message) => warnings.push(message) },
      lookup: () => Promise.reject(new Error('no such name')),
    });
    for (let i = 0; i < 1_100; i++) lost.send(MESSAGE);
    await untilTruthy(() => warnings.length > 0);
    expect(warnings).toEqual(['HEP collector cannot be resolved']);
    expect(lost.dump()).toEqual({ sent: 0, dropped: 100 });
    const { socket, port } = await startCollector();
    await using sender = openHepSender({ collector: { host: '127.0.0.1', port }, captureId: 7, logger: silent });
    sender.send({ ...MESSAGE, text: 'x'.repeat(70_000) });
    await untilTruthy(() => sender.dump().dropped === 1);
    expect(socket.address().port).toBe(port);
    sender.send(MESSAGE);
    await untilTruthy(() => sender.dump().sent === 1);
  });
});
