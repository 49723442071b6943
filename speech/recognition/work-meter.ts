import { LATE, within } from '../../runtime/waiting.ts';
import { type EngineName, RecognizerError } from '../recognizer.ts';

/** From here on what was measured before counts for half. */
const MEASURED_AUDIO_MS = 600_000;

/** How long each engine works for how much audio, of late. */
export class WorkMeter {
  readonly #done = new Map<EngineName, { workMs: number; audioMs: number }>();

  add(engine: EngineName, { workMs, audioMs }: { workMs: number; audioMs: number }): void {
    const done = this.#done.get(engine) ?? { workMs: 0, audioMs: 0 };
    const weight = done.audioMs > MEASURED_AUDIO_MS ? 0.5 : 1;
    this.#done.set(engine, { workMs: done.workMs * weight + workMs, audioMs: done.audioMs * weight + audioMs });
  }

  /** Seconds of work per second of audio; null before anything was measured. */
  realTimeFactorOf(engine: EngineName): number | null {
    const done = this.#done.get(engine);
    return done === undefined || done.audioMs === 0 ? null : done.workMs / done.audioMs;
  }
}

/** @throws RecognizerError `crashed` when the answer does not come in time */
export async function answeredWithin<Answer>(answer: Promise<Answer>, withinMs: number): Promise<Answer> {
  const answered = await within(answer, { ms: withinMs });
  if (answered === LATE) throw new RecognizerError('crashed', 'the recognizer does not answer', { retryable: true });
  return answered;
}
