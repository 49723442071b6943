import type { Codec } from '../../machines/events.ts';
import type { PacketAudio } from '../../media/recording/timeline.ts';
import { PacketDecoder } from '../../media/relay/packet-decoder.ts';
import { emptyRtpHeader } from '../../media/rtp/packet.ts';

interface DecodedPacketOptions {
  codec?: Codec;
  ssrc?: number;
  sequence?: number;
  timestamp: number;
  /** Decoder of the stream, for stateful codecs. Default: a new one. */
  decoder?: PacketDecoder;
}

export function decodedPacket(payload: Uint8Array, options: DecodedPacketOptions): PacketAudio {
  const { codec = 'PCMU', decoder = new PacketDecoder(payload.length), ...fields } = options;
  decoder.decode(codec, payload, { ...emptyRtpHeader(), ssrc: 1, ...fields, payloadBytes: payload.length });
  return decoder;
}
