import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { mulawOf } from '../../console/playground/audio/mulaw.ts';
import { Resampler } from '../../console/playground/audio/resampler.ts';
import { isRaw, wavOf } from '../../console/playground/audio/wav.ts';
import { curlOf, quoted } from '../../console/playground/command.ts';
import { differences } from '../../console/playground/correction/diff.ts';
import { lengthOf, type SpeechForm, speechRequestOf } from '../../console/playground/speech/speech-request.ts';
import { encodeG711 } from '../../media/codecs/g711.ts';
import { parseWav } from '../../media/wav.ts';
import * as fc from '../properties.ts';

const HOSTILE = `it's "5 $HOME" \\ \`id\` $(id) !! #\n\tend'`;

describe('the length of a text to speak', () => {
  const form: Omit<SpeechForm, 'text' | 'pitch'> = {
    ...{ mode: 'text', voiceId: null, speed: 1, stability: 50 },
    ...{ encoding: 'MP3', rateHz: 24_000, isStreamed: true },
  };

  it('includes the markup that a pitch adds, which the server counts, too', () => {
    const raised = { ...form, text: 'Q&A', pitch: 2 };
    expect(lengthOf(raised)).toBe(speechRequestOf(raised).text.length);
    expect(lengthOf(raised)).toBeGreaterThan(40);
    expect(lengthOf({ ...raised, pitch: 0 })).toBe(3);
    expect(lengthOf({ ...raised, text: '' })).toBe(0);
  });

  it('counts an emoji once, as the server does', () => {
    expect(lengthOf({ ...form, text: '😀'.repeat(5), pitch: 0 })).toBe(5);
  });
});

describe('the quotes of a shell', () => {
  it('leave plain words as they are', () => {
    expect(quoted('https://tandem.example/v1/chat/completions')).toBe('https://tandem.example/v1/chat/completions');
  });

  it('wrap an empty word', () => {
    expect(quoted('')).toBe("''");
  });

  it('pass quotes, newlines, dollars and backslashes to the program', () => {
    expect(printedBy(quoted(HOSTILE))).toBe(HOSTILE);
  });

  it('pass any text to the program', () => {
    const text = fc.string({ unit: 'binary' }).filter((value) => !value.includes('\0') && value.isWellFormed());
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 50 }), (words) => {
        const script = words.map((word) => `printf '%s\\0' ${quoted(word)}`).join('\n');
        expect(execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0').slice(0, -1)).toEqual(words);
      }),
      { numRuns: 5 },
    );
  });
});

describe('a curl command', () => {
  it('sends the JSON of the form and the key of the environment', () => {
    const command = curlOf({ method: 'POST', path: '/memory/search', json: { query: HOSTILE } }, 'http://127.0.0.1:1');
    expect(argumentsOf(command, { TANDEM_API_KEY: 'sk_1' })).toEqual([
      '-sS',
      '-X',
      'POST',
      'http://127.0.0.1:1/memory/search',
      '-H',
      'Authorization: Bearer sk_1',
      '-H',
      'Content-Type: application/json',
      '--data-raw',
      JSON.stringify({ query: HOSTILE }, null, 2),
    ]);
  });

  it('sends a field that begins with @ as text, and a file as a file', () => {
    const form = [
      ['context', '@secret;type=x'],
      ['file', { file: 'my "best" call.wav' }],
    ] as const;
    const sent = argumentsOf(curlOf({ method: 'POST', path: '/stt', form }, 'http://127.0.0.1:1'));
    expect(sent.slice(-4)).toEqual(['--form-string', 'context=@secret;type=x', '-F', 'file=@"my \\"best\\" call.wav"']);
  });

  it('writes the response to a file, or as it arrives', () => {
    const command = { method: 'POST', path: '/tts-stream', json: {}, accept: 'audio/mpeg', output: 'a b.mp3' } as const;
    expect(argumentsOf(curlOf(command, ''))).toEqual(expect.arrayContaining(['Accept: audio/mpeg', 'a b.mp3']));
    expect(argumentsOf(curlOf({ ...command, isStreamed: true }, ''))[0]).toBe('-sN');
  });
});

describe('the differences of two texts', () => {
  it('name the words that changed', () => {
    expect(differences('i dont know', "I don't know.")).toEqual([
      { kind: 'removed', text: 'i' },
      { kind: 'added', text: 'I' },
      { kind: 'same', text: ' ' },
      { kind: 'removed', text: 'dont' },
      { kind: 'added', text: "don't" },
      { kind: 'same', text: ' know' },
      { kind: 'added', text: '.' },
    ]);
  });

  it('keep combining marks and surrogate pairs whole', () => {
    expect(differences('मैं घर 😀', 'मैं घर 😁।')).toEqual([
      { kind: 'same', text: 'मैं घर ' },
      { kind: 'removed', text: '😀' },
      { kind: 'added', text: '😁।' },
    ]);
  });

  it('compare equal and empty texts', () => {
    expect(differences('', '')).toEqual([]);
    expect(differences('a b', 'a b')).toEqual([{ kind: 'same', text: 'a b' }]);
    expect(differences('', 'a')).toEqual([{ kind: 'added', text: 'a' }]);
  });

  it('replace a text that has hardly a word in common as a whole', () => {
    const words = (prefix: string) => Array.from({ length: 3_000 }, (_, index) => `${prefix}${index}`).join('');
    const [before, after] = [`${words('a ')} end`, `${words('b,')} end`];
    expect(rebuilt(differences(before, after))).toEqual([before, after]);
  });

  it('contain both texts, whatever they are', () => {
    const text = fc
      .array(fc.constantFrom('a', 'b', 'c', ' ', '\n', ',', "'", 'é', '😀'))
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, text, (before, after) => {
        expect(rebuilt(differences(before, after))).toEqual([before, after]);
      }),
    );
  });
});

describe('the audio of a microphone', () => {
  it('becomes the same mu-law as in the media plane', () => {
    const samples = Int16Array.from({ length: 65_536 }, (_, index) => index - 32_768);
    const expected = new Uint8Array(samples.length);
    encodeG711('PCMU', samples, expected);
    expect(mulawOf(samples)).toEqual(expected);
  });

  it.each([8_000, 16_000])('keeps a tone of the voice band and drops one above %i Hz', (rateHz) => {
    expect(levelAfter({ toneHz: 1_000, rateHz })).toBeCloseTo(Math.SQRT1_2, 2);
    expect(levelAfter({ toneHz: 0.7 * rateHz, rateHz })).toBeLessThan(0.001);
  });

  it('produces the same samples in blocks of any length', () => {
    const tone = toneOf(440, 48_000);
    const whole = new Resampler(48_000, 16_000).process(tone);
    const resampler = new Resampler(48_000, 16_000);
    const parts = Array.from({ length: Math.ceil(tone.length / 128) }, (_, block) => [
      ...resampler.process(tone.subarray(128 * block, 128 * (block + 1))),
    ]).flat();
    expect(parts).toEqual([...whole]);
  });
});

describe('raw audio of a synthesis', () => {
  it('becomes a WAV file that browsers play', async () => {
    const audio = Uint8Array.from({ length: 320 }, (_, index) => index & 0xff);
    const wav = parseWav(Buffer.from(await wavOf(audio, 'LINEAR16', 8_000).arrayBuffer()));
    expect(wav).toMatchObject({ sampleRateHz: 8_000, channels: 1 });
    expect(['LINEAR16', 'MULAW', 'ALAW', 'MP3', 'toString'].map(isRaw)).toEqual([true, true, true, false, false]);
  });
});

function printedBy(words: string): string {
  return execFileSync('sh', ['-c', `printf %s ${words}`], { encoding: 'utf8' });
}

/** The arguments that the shell would pass to curl. */
function argumentsOf(command: string, env: Record<string, string> = {}): string[] {
  const script = `curl() { printf '%s\\0' "$@"; }\n${command}`;
  return execFileSync('sh', ['-c', script], { encoding: 'utf8', env: { ...process.env, ...env } })
    .split('\0')
    .slice(0, -1);
}

function rebuilt(changes: ReturnType<typeof differences>): [string, string] {
  const without = (unwanted: string) =>
    changes
      .filter(({ kind }) => kind !== unwanted)
      .map(({ text }) => text)
      .join('');
  return [without('added'), without('removed')];
}

function toneOf(toneHz: number, rateHz: number): Float32Array {
  return Float32Array.from({ length: rateHz / 2 }, (_, index) => Math.sin((2 * Math.PI * toneHz * index) / rateHz));
}

/** Root mean square of half a second of a tone at 48 kHz, resampled, without its edges. */
function levelAfter({ toneHz, rateHz }: { toneHz: number; rateHz: number }): number {
  const output = new Resampler(48_000, rateHz).process(toneOf(toneHz, 48_000)).subarray(100, -100);
  return Math.sqrt(output.reduce((sum, sample) => sum + sample * sample, 0) / output.length);
}
