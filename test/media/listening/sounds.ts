import { seededRandom } from '../../../runtime/seeded-random.ts';

/** Telephone sounds other than speech, at 16 kHz. `levelDbfs` is the peak. */

const RATE_HZ = 16_000;

interface SoundOptions {
  durationMs: number;
  levelDbfs: number;
  seed: number;
}

type Sound = (options: SoundOptions) => Int16Array<ArrayBuffer>;

const DTMF_ROWS_HZ = [697, 770, 852, 941];
const DTMF_COLUMNS_HZ = [1209, 1336, 1477, 1633];

export const SIGNALLING: Record<string, Sound> = {
  'DTMF digits, 80 ms each': digits(80, 80),
  'DTMF digits, 250 ms each': digits(250, 150),
  'DTMF digit held': cadence([697, 1209], 20_000, 1000),
  'dial tone (350 + 440 Hz)': cadence([350, 440], 20_000, 1000),
  'European dial tone (425 Hz)': cadence([425], 20_000, 1000),
  'ringback (440 + 480 Hz)': cadence([440, 480], 2000, 4000),
  'Indian ringback (400 + 450 Hz)': cadence([400, 450], 400, 200),
  'busy tone (480 + 620 Hz)': cadence([480, 620], 500, 500),
  'European busy tone (425 Hz)': cadence([425], 480, 480),
  'congestion tone (480 + 620 Hz)': cadence([480, 620], 250, 250),
  'special information tones': sequence([950, 1400, 1800, 0], 330),
  'fax calling tone (1100 Hz)': cadence([1100], 500, 3000),
  'answering machine beep (1 kHz)': cadence([1000], 700, 2000),
};

export const NOISES: Record<string, Sound> = {
  silence: ({ durationMs }) => new Int16Array((durationMs * RATE_HZ) / 1000),
  'clicks, two a second': clicks(500),
  'crackle, twenty a second': clicks(50),
  'white noise': noise(0),
  'brown noise': noise(0.97),
  'mains hum': cadence([50, 150, 250], 20_000, 1000),
  'bursts of noise': bursts,
};

export const MUSIC: Record<string, Sound> = {
  'held chords': music({ notesAtOnce: 4, noteMs: 1500, decayPerS: 0.5, beatMs: 0 }),
  'arpeggio with a beat': music({ notesAtOnce: 1, noteMs: 250, decayPerS: 4, beatMs: 500 }),
  'chords with a beat': music({ notesAtOnce: 3, noteMs: 1000, decayPerS: 1.5, beatMs: 500 }),
  'plucked melody': music({ notesAtOnce: 1, noteMs: 400, decayPerS: 3, beatMs: 0 }),
  'organ melody': music({ notesAtOnce: 1, noteMs: 500, decayPerS: 0, beatMs: 0 }),
};

function digits(onMs: number, offMs: number): Sound {
  return (options) => {
    const random = seededRandom(options.seed);
    const pick = (from: number[]): number => from[Math.floor(random() * from.length)]!;
    let pair = [697, 1209];
    let digit = -1;
    return render(options, (seconds) => {
      const at = Math.floor((seconds * 1000) / (onMs + offMs));
      if (at !== digit) [digit, pair] = [at, [pick(DTMF_ROWS_HZ), pick(DTMF_COLUMNS_HZ)]];
      return (seconds * 1000) % (onMs + offMs) < onMs ? sines(pair, seconds) : 0;
    });
  };
}

function cadence(frequenciesHz: number[], onMs: number, offMs: number): Sound {
  return (options) =>
    render(options, (seconds) => ((seconds * 1000) % (onMs + offMs) < onMs ? sines(frequenciesHz, seconds) : 0));
}

function sequence(frequenciesHz: number[], eachMs: number): Sound {
  return (options) =>
    render(options, (seconds) => {
      const hz = frequenciesHz[Math.floor((seconds * 1000) / eachMs) % frequenciesHz.length]!;
      return hz === 0 ? 0 : sines([hz], seconds);
    });
}

function clicks(meanGapMs: number): Sound {
  return (options) => {
    const random = seededRandom(options.seed);
    let level = 0;
    return render(options, () => {
      if (random() < 1000 / meanGapMs / RATE_HZ) level = random() < 0.5 ? 1 : -1;
      level *= 0.8;
      return level;
    });
  };
}

function noise(smoothing: number): Sound {
  return (options) => {
    const random = seededRandom(options.seed);
    let value = 0;
    return render(options, () => {
      value = smoothing * value + (1 - smoothing) * (2 * random() - 1) * (smoothing === 0 ? 1 : 6);
      return value;
    });
  };
}

function bursts(options: SoundOptions): Int16Array<ArrayBuffer> {
  const random = seededRandom(options.seed);
  return render(options, (seconds) => Math.exp(-((seconds % 0.6) / 0.05)) * (2 * random() - 1));
}

/** C major notes with eight decaying partials; with a beat, also drum strokes of noise and a low tone. */
function music(style: { notesAtOnce: number; noteMs: number; decayPerS: number; beatMs: number }): Sound {
  const scale = [0, 2, 4, 5, 7, 9, 11, 12, 14, 16];
  return (options) => {
    const random = seededRandom(options.seed);
    let notesHz: number[] = [];
    let current = -1;
    return render(options, (seconds) => {
      const note = Math.floor((seconds * 1000) / style.noteMs);
      if (note !== current) {
        current = note;
        notesHz = Array.from({ length: style.notesAtOnce }, () => 196 * 2 ** (scale[Math.floor(random() * 10)]! / 12));
      }
      const since = seconds - (note * style.noteMs) / 1000;
      const envelope = Math.min(1, since / 0.01) * Math.exp(-style.decayPerS * since);
      let value = 0;
      for (const hz of notesHz) {
        for (let partial = 1; partial <= 8; partial++) {
          value += Math.sin(2 * Math.PI * hz * partial * seconds) / partial / notesHz.length / 2;
        }
      }
      value *= envelope;
      if (style.beatMs > 0) {
        const sinceBeat = seconds % (style.beatMs / 1000);
        value += 0.5 * Math.exp(-sinceBeat / 0.04) * (2 * random() - 1);
        value += 0.5 * Math.exp(-sinceBeat / 0.08) * Math.sin(2 * Math.PI * 80 * seconds);
      }
      return value / 2;
    });
  };
}

function sines(frequenciesHz: number[], seconds: number): number {
  let sum = 0;
  for (const hz of frequenciesHz) sum += Math.sin(2 * Math.PI * hz * seconds);
  return sum / frequenciesHz.length;
}

function render({ durationMs, levelDbfs }: SoundOptions, at: (seconds: number) => number): Int16Array<ArrayBuffer> {
  const amplitude = 32_767 * 10 ** (levelDbfs / 20);
  const samples = new Int16Array((durationMs * RATE_HZ) / 1000);
  for (let i = 0; i < samples.length; i++) {
    samples[i] = Math.max(-32_768, Math.min(32_767, Math.round(amplitude * at(i / RATE_HZ))));
  }
  return samples;
}
