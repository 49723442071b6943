import type { UtteranceMessage } from '../../../machines/utterances.ts';
import { decodeG711 } from '../../../media/codecs/g711.ts';
import { ChannelListener } from '../../../media/listening/channel-listener.ts';
import { NoiseSuppressors } from '../../../media/listening/noise-suppressor.ts';
import { liveRules } from '../../../media/listening/segmentation-rules.ts';
import { SileroNetworks } from '../../../media/listening/silero-network.ts';
import type { AudioEnhancement } from '../../../media/listening-plane.ts';
import { asMulaw8k } from '../../speech/spoken.ts';
import { joined } from './recogniser.ts';

export const networks = await SileroNetworks.load();
export const suppressors = await NoiseSuppressors.load();

/** `wide`: 16 kHz unchanged; `telephone`: through 8 kHz mu-law. */
export type Line = 'wide' | 'telephone';

interface DetectionOptions {
  line?: Line;
  enhancement?: AudioEnhancement;
  /** Uses energy and tonality only, without the neural network. */
  isWithoutNetwork?: boolean;
}

/** Messages of a listener in this thread for samples at 16 kHz. */
export function detectUtterances(samples: Int16Array, options: DetectionOptions = {}): UtteranceMessage[] {
  const messages: UtteranceMessage[] = [];
  const network = options.isWithoutNetwork ? null : networks.create();
  const isTelephone = options.line === 'telephone';
  let utteranceId = 0;
  const listener = new ChannelListener({
    channel: 0,
    sampleRateHz: isTelephone ? 8000 : 16_000,
    rules: liveRules(1000),
    enhancement: options.enhancement ?? 'off',
    network,
    suppressors,
    nextUtteranceId: () => utteranceId++,
    post: (message) => messages.push(message),
    onSpeechStarted: () => {},
  });
  const received = Float32Array.from(isTelephone ? throughMulaw(samples) : samples);
  listener.front.push(received, received.length);
  listener.finish();
  listener.close();
  return messages;
}

/** Audio span and speech duration of each utterance that was not discarded. */
export function speechSpans(messages: UtteranceMessage[]): { fromMs: number; toMs: number; speechMs: number }[] {
  return messages.flatMap((message) => {
    if (message.type !== 'utterance.end') return [];
    const samples = blocksOf(messages, message.utteranceId).reduce((sum, { length }) => sum + length, 0);
    const { startMs, speechMs } = message.summary;
    return [{ fromMs: startMs, toMs: startMs + samples / 16, speechMs }];
  });
}

export function audioOf(messages: UtteranceMessage[], utteranceId: number): Int16Array {
  return joined(...blocksOf(messages, utteranceId));
}

function blocksOf(messages: UtteranceMessage[], utteranceId: number): Int16Array[] {
  return messages.flatMap((message) =>
    message.type === 'utterance.audio' && message.utteranceId === utteranceId ? [message.samples] : [],
  );
}

function throughMulaw(samples: Int16Array): Int16Array {
  const octets = asMulaw8k(samples);
  const decoded = new Int16Array(octets.length);
  decodeG711('PCMU', octets, decoded);
  return decoded;
}
