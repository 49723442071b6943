import type { PublicCall } from '../actors/call-view.ts';
import { type IpEndpoint, tcpPacket, udpPacket } from '../runtime/ip-packet.ts';
import { type CapturedPacket, pcapngFile } from '../runtime/pcapng.ts';
import type { StoredSipMessage } from '../storage/queries/sip-messages.ts';
import { rtcpReport } from './rtcp-report.ts';

/**
 * Exports a call's SIP messages as a capture file for Wireshark, with their real addresses and times. IP headers and
 * TCP sequence numbers are made up. RTP packets are not stored, so each leg gets an RTCP report with its measured
 * quality.
 */
export function sipCapture(call: CapturedCall, messages: readonly StoredSipMessage[]): Buffer {
  const flows = new Map<string, { sent: number; received: number }>();
  const packets = messages.map((stored) => {
    const { leg, at, direction, transport, message: payload, isCut } = stored;
    const { local, remote } = endpointsOf(stored, messages);
    const ends = direction === 'sent' ? { source: local, destination: remote } : { source: remote, destination: local };
    const comment = `${leg} leg, ${direction} by Tandem over ${transport}${isCut ? ', cut off' : ''}`;
    const bytes = transport === 'udp' ? udpPacket({ ...ends, payload }) : segment(stored, { ...ends, local, remote });
    return { atMs: at.getTime(), bytes, direction, comment };
  });
  return pcapngFile({ comment: commentOf(call), packets: [...packets, ...qualityReports(call, messages)] });

  function segment(
    { direction, message: payload }: StoredSipMessage,
    { local, remote, ...ends }: Record<'source' | 'destination' | 'local' | 'remote', IpEndpoint>,
  ): Buffer {
    const key = JSON.stringify([local, remote]);
    const flow = flows.get(key) ?? { sent: 1, received: 1 };
    flows.set(key, flow);
    const sequence = flow[direction];
    const acknowledged = flow[direction === 'sent' ? 'received' : 'sent'];
    flow[direction] += payload.length;
    return tcpPacket({ ...ends, payload, sequence, acknowledged });
  }
}

/** A drachtio-server omits some addresses. Takes the peer's from other messages of the leg, ours from any leg. */
function endpointsOf(
  stored: StoredSipMessage,
  messages: readonly StoredSipMessage[],
): { local: IpEndpoint; remote: IpEndpoint } {
  const byUs = stored.localHost === null ? messages.find((each) => each.localHost !== null) : stored;
  const isOfLeg = (each: StoredSipMessage) => each.leg === stored.leg && each.remoteHost !== null;
  const byPeer = stored.remoteHost === null ? messages.find(isOfLeg) : stored;
  return {
    local: { host: byUs?.localHost ?? '', port: byUs?.localPort ?? SIP_PORT },
    remote: { host: byPeer?.remoteHost ?? '', port: byPeer?.remotePort ?? SIP_PORT },
  };
}

/** Wireshark shows these as RTCP, because the SDP names the ports. */
function qualityReports({ legs, end_time }: CapturedCall, messages: readonly StoredSipMessage[]): CapturedPacket[] {
  return legs.flatMap(({ leg_id: leg, quality, left_at }) => {
    const ofLeg = messages.filter((message) => message.leg === leg);
    const [source, destination] = [mediaPort(ofLeg, 'sent'), mediaPort(ofLeg, 'received')];
    const atMs = Date.parse(left_at ?? end_time ?? '');
    if (quality === null || source === null || destination === null || Number.isNaN(atMs)) return [];
    const comment = `${leg} leg: not from the wire, but made up of what Tandem measured in all RTP packets of the peer`;
    const ends = { source: rtcpOf(source), destination: rtcpOf(destination) };
    return [{ atMs, bytes: udpPacket({ ...ends, payload: rtcpReport(quality) }), direction: 'sent', comment }];
  });
}

/** RTP address of the first used stream in the last SDP of a direction. */
function mediaPort(messages: readonly StoredSipMessage[], direction: StoredSipMessage['direction']): IpEndpoint | null {
  const read = ({ message }: StoredSipMessage): IpEndpoint | null => {
    const text = message.toString('latin1');
    const host = /\nc=IN IP[46] ([\da-f.:]+)/i.exec(text)?.[1];
    const port = Number(/\nm=audio ([1-9]\d{0,4})[ /]/.exec(text)?.[1]);
    return host !== undefined && port > 0 && port < 65_535 ? { host, port } : null;
  };
  const ends = messages.filter((each) => each.direction === direction).map(read);
  return ends.findLast((each) => each !== null) ?? null;
}

/** RTCP uses the next port (RFC 3550 §11). */
function rtcpOf({ host, port }: IpEndpoint): IpEndpoint {
  return { host, port: port + 1 };
}

function commentOf({ call_id, quality }: CapturedCall): string {
  const about = `SIP messages of call ${call_id}, with secrets masked.`;
  if (quality === null) return `${about} RTP packets are not kept.`;
  return `${about} RTP packets are not kept. Tandem measured this media quality: ${JSON.stringify(quality)}`;
}

type CapturedCall = Pick<PublicCall, 'call_id' | 'quality' | 'legs' | 'end_time'>;

const SIP_PORT = 5060;
