import type { PublicCall } from '../actors/call-view.ts';
import { type IpEndpoint, tcpPacket, udpPacket } from '../runtime/ip-packet.ts';
import { pcapngFile } from '../runtime/pcapng.ts';
import type { StoredSipMessage } from '../storage/queries/sip-messages.ts';

/**
 * The SIP messages of a call as a capture file for Wireshark. Addresses and times are those of the wire. IP headers are made up, and so are
 * the sequence numbers of TCP. RTP packets are not kept, so the measured quality of the media is the comment of the file.
 */
export function sipCapture(
  call: Pick<PublicCall, 'call_id' | 'quality'>,
  messages: readonly StoredSipMessage[],
): Buffer {
  const flows = new Map<string, { sent: number; received: number }>();
  const packets = messages.map((stored) => {
    const { leg, at, direction, transport, message: payload, isCut } = stored;
    const { local, remote } = endpointsOf(stored, messages);
    const ends = direction === 'sent' ? { source: local, destination: remote } : { source: remote, destination: local };
    const comment = `${leg} leg, ${direction} by Tandem over ${transport}${isCut ? ', cut off' : ''}`;
    const bytes = transport === 'udp' ? udpPacket({ ...ends, payload }) : segment(stored, { ...ends, local, remote });
    return { atMs: at.getTime(), bytes, direction, comment };
  });
  return pcapngFile({ comment: commentOf(call), packets });

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

/** What a drachtio-server does not say is taken from other messages: of the leg for the peer, of any leg for us. */
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

function commentOf({ call_id, quality }: Pick<PublicCall, 'call_id' | 'quality'>): string {
  const about = `SIP messages of call ${call_id}, with secrets masked.`;
  if (quality === null) return `${about} RTP packets are not kept.`;
  return `${about} RTP packets are not kept. Tandem measured this media quality: ${JSON.stringify(quality)}`;
}

const SIP_PORT = 5060;
