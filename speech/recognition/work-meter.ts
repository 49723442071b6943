import { LATE, within } from '../../runtime/waiting.ts';
import { type EngineName, RecognizerError } from '../recognizer.ts';

/** Beyond this much audio, older measurements count half. */
const MEASURED_AUDIO_MS = 600_000;

/** Measures each engine's recent work time per audio time. */
export class WorkMeter {
  readonly #done = new Map<EngineName, { workMs: number; audioMs: number }>();

  add(engine: EngineName, { workMs, audioMs }: { workMs: number; audioMs: number }): void {
    const done = this.#done.get(engine) ?? { workMs: 0, audioMs: 0 };
    const weight = done.audioMs > MEASURED_AUDIO_MS ? 0.5 : 1;
    this.#done.set(engine, { workMs: done.workMs * weight + workMs, audioMs: done.audioMs * weight + audioMs });
  }

  /** Seconds of work per second of audio; null before the first measurement. */
  realTimeFactorOf(engine: EngineName): number | null {
    const done = this.#done.get(engine);
    return done === undefined || done.audioMs === 0 ? null : done.workMs / done.audioMs;
  }
}

/** @throws RecognizerError `crashed` if the answer does not come in time */
export async function answeredWithin<Answer>(answer: Promise<Answer>, withinMs: number): Promise<Answer> {
  const answered = await within(answer, { ms: withinMs });
  if (answered === LATE) throw new RecognizerError('crashed', 'the recognizer does not answer', { retryable: true });
  return answered;
}
