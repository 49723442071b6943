import { describe, expect, it } from 'vitest';
import { tcpPacket, udpPacket } from '../../runtime/ip-packet.ts';
import { pcapngFile } from '../../runtime/pcapng.ts';
import * as fc from '../properties.ts';
import { readPcapng } from './pcapng-reader.ts';

const HERE = { host: '192.0.2.1', port: 5060 };
const THERE = { host: '198.51.100.7', port: 5080 };

describe('IP packet', () => {
  it('matches a reference datagram with checksums', () => {
    const packet = udpPacket({ source: HERE, destination: THERE, payload: Buffer.from('hi!') });
    expect(packet.toString('hex')).toBe(
      '4500001f000000004011' + '8e92' + 'c0000201' + 'c6336407' + '13c413d8000b' + '6296' + '686921',
    );
  });

  it('contains valid lengths and checksums for any payload, family and transport', () => {
    const host = fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom('sip.example', '', '::ffff:10.0.0.1', 'fe80::1%eth0'));
    const end = fc.record({ host, port: fc.integer({ min: 0, max: 65_535 }) });
    const payload = fc.uint8Array({ maxLength: 2_000 }).map((bytes) => Buffer.from(bytes));
    fc.assert(
      fc.property(end, end, payload, fc.nat(), (source, destination, bytes, sequence) => {
        const given = { source, destination, payload: bytes };
        const packets = [udpPacket(given), tcpPacket({ ...given, sequence, acknowledged: 2 ** 32 + 1 })];
        const file = pcapngFile({
          comment: 'two',
          packets: packets.map((packet) => ({
            atMs: 1_767_323_045_678,
            bytes: packet,
            direction: 'sent',
            comment: 'é',
          })),
        });
        const read = readPcapng(file);
        expect(read).toMatchObject({ comment: 'two', linkType: 101 });
        expect(read.packets.map(({ protocol }) => protocol)).toEqual(['udp', 'tcp']);
        for (const packet of read.packets) {
          expect(packet).toMatchObject({ atMs: 1_767_323_045_678, comment: 'é', direction: 2 });
          expect([packet.sourcePort, packet.destinationPort]).toEqual([source.port, destination.port]);
          expect(packet.payload.equals(bytes)).toBe(true);
        }
      }),
    );
  });

  it('contains unspecified addresses for unknown and mixed families', () => {
    const payload = Buffer.alloc(1);
    const [mixed, unknown] = readPcapng(
      pcapngFile({
        comment: '',
        packets: [
          udpPacket({ source: HERE, destination: { host: '2001:db8::1', port: 5060 }, payload }),
          udpPacket({ source: { host: 'sip.example', port: 5060 }, destination: THERE, payload }),
        ].map((bytes) => ({ atMs: 0, bytes, direction: 'received', comment: '' })),
      }),
    ).packets;
    expect(mixed).toMatchObject({ version: 6, source: '0'.repeat(32), destination: `20010db8${'0'.repeat(23)}1` });
    expect(unknown).toMatchObject({ version: 4, source: '00000000', destination: 'c6336407', direction: 1 });
  });
});
