import { fromPromise } from 'xstate';
import type { RefinedText, RefineInput } from '../../machines/stt-session-events.ts';
import type { Clock } from '../../runtime/clock.ts';
import { removeFillers } from '../../speech/fillers.ts';
import { type Refine, refineTranscript } from '../../speech/refinement.ts';

/** The canonical final is due 700 ms after the first one (platform specification, Transcription rule 1). */
const REFINE_WITHIN_MS = 700;

/** The session machine's `refine` port: removes fillers if requested, then asks the model. */
export function refinementPort({ refine, clock }: { refine: Refine | null; clock: Clock }) {
  return fromPromise<RefinedText, RefineInput>(async ({ input, signal }) => {
    const { text, words } = withoutFillers(input);
    const refinement = await refineTranscript(
      { text, language: input.language },
      { refine, context: input.talk, timeoutMs: REFINE_WITHIN_MS, clock, signal },
    );
    return { ...refinement, words };
  });
}

function withoutFillers({ text, words, language, removeFillers: isWanted }: RefineInput) {
  const kept = isWanted ? removeFillers({ text, words }, language) : { text, words };
  return kept.text.trim() === '' ? { text, words } : kept;
}
