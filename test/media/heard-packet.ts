import type { Codec } from '../../machines/events.ts';
import type { PacketAudio } from '../../media/recording/timeline.ts';
import { PacketDecoder } from '../../media/relay/packet-decoder.ts';
import { emptyRtpHeader } from '../../media/rtp/packet.ts';

interface HeardPacket {
  codec?: Codec;
  ssrc?: number;
  sequence?: number;
  timestamp: number;
  /** Of the stream, where packets depend on those before them. Default: a new one. */
  decoder?: PacketDecoder;
}

/** The audio of a packet with that payload, as a session has it. */
export function heardPacket(payload: Uint8Array, options: HeardPacket): PacketAudio {
  const { codec = 'PCMU', decoder = new PacketDecoder(payload.length), ...fields } = options;
  decoder.decode(codec, payload, { ...emptyRtpHeader(), ssrc: 1, ...fields, payloadBytes: payload.length });
  return decoder;
}
