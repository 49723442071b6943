import { NoiseFloor } from '../dsp/noise-floor.ts';
import type { SileroNetwork } from './silero-network.ts';
import type { WindowKind } from './windows.ts';

export class VoiceDetector {
  readonly #network: SileroNetwork | null;
  readonly #floor = new NoiseFloor();

  constructor(network: SileroNetwork | null) {
    this.#network = network;
  }

  judge(samples: Float32Array, power: number): WindowKind {
    const isAudible = this.#floor.rises(power);
    if (!isAudible) return 'background';
    const isVoice = this.#network === null ? true : this.#network.hears(samples);
    return isVoice ? 'speech' : 'background';
  }
}
