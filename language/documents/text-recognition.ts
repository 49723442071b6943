import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createWorker, OEM, type Worker } from 'tesseract.js';
import { RECOGNITION_LIMITS } from './reading-limits.ts';
import { ReaderBroken } from './reading-refusal.ts';
import { joinLines } from './text-lines.ts';
import { TURNS, turnedPicture } from './turned-picture.ts';

/** Recognises English text in pictures with tesseract and its installed data. */
export interface TextRecognition {
  /** True when the limit of pictures or time is reached. */
  readonly isExhausted: boolean;
  /** @param picture PNG, JPEG, WebP or PNM of a checked size @returns '' if there is no text @throws Error */
  recognise(picture: Buffer): Promise<string>;
  close(): Promise<void>;
}

/** A running tesseract. It keeps nothing of the pictures. */
export type RecognitionEngine = Worker;

/** @param given stays open for other documents; null: starts an engine for the first picture */
export function createTextRecognition(given: RecognitionEngine | null): TextRecognition {
  let opening: Promise<RecognitionEngine> | null = null;
  let startedAtMs: number | null = null;
  let pictures = 0;
  const hasRunOut = () => startedAtMs !== null && performance.now() - startedAtMs > RECOGNITION_LIMITS.wallMs;

  return {
    get isExhausted() {
      return pictures >= RECOGNITION_LIMITS.pictures || hasRunOut();
    },

    async recognise(picture) {
      startedAtMs ??= performance.now();
      pictures += 1;
      opening ??= given === null ? openRecognitionEngine() : Promise.resolve(given);
      const engine = await opening;
      let best = await seen(engine, picture);
      if (best.text.trim() !== '' && best.confidence < SURE_CONFIDENCE) {
        for (const orientation of TURNS) {
          const turned = turnedPicture(picture, orientation);
          if (turned === null || best.confidence >= SURE_CONFIDENCE || hasRunOut()) break;
          const other = await seen(engine, turned);
          if (other.confidence > best.confidence) best = other;
        }
      }
      return best.confidence < LEAST_CONFIDENCE ? '' : textOf(best.text);
    },

    async close() {
      if (given === null) await (await opening)?.terminate();
    },
  };
}

/** In per cent. Below it, shapes were mistaken for letters. */
const LEAST_CONFIDENCE = 30;
/** In per cent. Below it, the picture may be rotated. Even faint upright text scores higher. */
const SURE_CONFIDENCE = 60;

async function seen(engine: RecognitionEngine, picture: Buffer) {
  const { data } = await engine.recognize(picture, {}, { text: true });
  return { text: data.text, confidence: data.confidence };
}

/** @throws ReaderBroken */
export function openRecognitionEngine(): Promise<RecognitionEngine> {
  const data = createRequire(import.meta.url).resolve('@tesseract.js-data/eng/package.json');
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => undefined);
  const worker = createWorker('eng', OEM.LSTM_ONLY, {
    langPath: join(dirname(data), '4.0.0_best_int'),
    gzip: true,
    cacheMethod: 'none',
    // The only place where a worker reports that it cannot start.
    errorHandler: (reason: unknown) => failed.reject(reason),
  });
  return Promise.race([worker, failed.promise]).catch((cause: unknown) => {
    throw new ReaderBroken(`tesseract does not begin: ${String(cause)}`);
  });
}

/** Lines end as in the picture, and blank lines separate paragraphs. */
function textOf(recognised: string): string {
  const blocks = recognised.split(/\n\s*\n/).map((block) => joinLines(block.split('\n')));
  return blocks.filter((block) => block !== '').join('\n\n');
}
