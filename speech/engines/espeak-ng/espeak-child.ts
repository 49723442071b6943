import load from '@echogarden/espeak-ng-emscripten';
import { TimeStretcher } from '../../../media/dsp/time-stretcher.ts';
import { AnswerWithBytes, serveEngine } from '../../engine-process/engine-child.ts';
import { SynthesizerError } from '../../synthesizer.ts';
import { controlsFor } from './controls.ts';
import { type ClauseRequest, clauseRequestCheck, SAMPLE_RATE_HZ } from './espeak-calls.ts';
import { espeakText } from './espeak-text.ts';
import { IpaReader } from './ipa.ts';
import { mnemonicsOfTable } from './phoneme-table.ts';

/** Runs eSpeak NG in a process of its own, reached over a pipe, because of its licence (GPL-3). */

/** Limit of a clause. Its caller then splits it. */
const MOST_SAMPLES = 120 * SAMPLE_RATE_HZ;
/** After the first block, which a listener waits for. */
const PART_SAMPLES = 8192;
const DATA = '/usr/share/espeak-ng-data';

serveEngine(async () => {
  const { eSpeakNGWorker, FS } = await load();
  const espeak = new eSpeakNGWorker();
  if (espeak.get_samplerate() !== SAMPLE_RATE_HZ) throw new Error('eSpeak NG speaks at another rate');
  const readers = new Map<string, IpaReader>();
  const files = new Map(
    espeak.list_voices().map(({ identifier }) => [identifier.split('/').at(-1)!.toLowerCase(), identifier]),
  );

  function selectVoice(voice: string): void {
    const isName = /^[a-z0-9-]{2,40}(\+[\w -]{1,40})?$/i.test(voice) && !voice.startsWith('mb');
    const variant = voice.split('+')[1];
    const exists = isName && (variant === undefined || FS.analyzePath(`${DATA}/voices/!v/${variant}`).exists);
    if (!exists || espeak.set_voice(voice) !== 0) {
      throw new SynthesizerError('unknown_voice', `eSpeak NG has no voice ${voice.slice(0, 80)}`);
    }
  }

  /** Created on first use, because the engine must be queried for every sound of the language. */
  function readerFor(voice: string): IpaReader {
    const name = voice.split('+')[0]!.toLowerCase();
    let reader = readers.get(name);
    if (reader === undefined) {
      const phontab = Buffer.from(FS.readFile(`${DATA}/phontab`));
      espeak.set_rate(450);
      reader = new IpaReader(mnemonicsOfTable(phontab, tableOf(name)), soundOf);
      readers.set(name, reader);
    }
    return reader;
  }

  function tableOf(name: string): string {
    const identifier = files.get(name);
    if (identifier === undefined) return name;
    const definition = Buffer.from(FS.readFile(`${DATA}/lang/${identifier}`)).toString('utf8');
    return /^phonemes\s+(\S+)/m.exec(definition)?.[1] ?? name;
  }

  function soundOf(mnemonic: string): string {
    let ipa = '';
    espeak.synthesize(`[[${mnemonic}]]`, (_, events) => {
      for (const event of events) if (event.type === 'phoneme') ipa += event.id ?? '';
      return false;
    });
    return ipa;
  }

  function speak({ words, voice, ...asked }: ClauseRequest, emit: (part: AnswerWithBytes) => void): void {
    selectVoice(voice);
    const { text, starts } = espeakText(
      words.map((word) => ({ ...word, written: '' })),
      (ipa) => readerFor(voice).read(ipa),
    );
    const { rate, pitch, range, stretch } = controlsFor(asked);
    const stretcher = stretch > 1 ? new TimeStretcher(SAMPLE_RATE_HZ, stretch) : null;
    espeak.set_rate(rate);
    espeak.set_pitch(pitch);
    espeak.set_range(range);
    let blocks: Int16Array[] = [];
    let marks: { word: number; atMs: number }[] = [];
    let held = 0;
    let samples = 0;
    let lastWord = -1;

    function emitPart(): void {
      const bytes = Buffer.concat(
        blocks.map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength)),
      );
      emit(new AnswerWithBytes({ marks }, bytes));
      blocks = [];
      marks = [];
      held = 0;
    }

    function take(block: Int16Array): void {
      blocks.push(block);
      held += block.length;
      samples += block.length;
    }

    espeak.synthesize(text, (block, events) => {
      for (const { type, text_position: position, audio_position: atMs } of events) {
        if (type !== 'word') continue;
        // A number has several marks, and reordered words have them out of order: the first counts.
        const word = starts.findLastIndex((start) => start <= position - 1);
        if (word <= lastWord) continue;
        lastWord = word;
        marks.push({ word, atMs: atMs * stretch });
      }
      take(stretcher === null ? block : stretcher.push(block));
      if (held > 0 && (samples === held || held >= PART_SAMPLES)) emitPart();
      return samples > MOST_SAMPLES;
    });
    if (stretcher !== null) take(stretcher.end());
    if (samples > MOST_SAMPLES) throw new SynthesizerError('too_long', 'a clause that takes minutes');
    if (held > 0 || marks.length > 0) emitPart();
  }

  return {
    speak(argument, _, emit) {
      if (!clauseRequestCheck.matches(argument)) throw new TypeError('not a clause');
      speak(argument, emit);
      return null;
    },
    voices: () =>
      espeak.list_voices().map(({ identifier, languages }) => ({
        name: identifier.split('/').at(-1)!.toLowerCase(),
        languages: languages.map(({ name }) => name),
      })),
  };
});
