import { startEspeak } from '../../../speech/engines/espeak-ng/espeak-synthesizer.ts';
import { BUILT_IN_VOICES, speechLanguages } from '../../../speech/synthesis/voices.ts';
import { type Finding, fail, ok, reasonOf } from './finding.ts';

/** Has the engine say a word, in a process of its own as in the server. */
export async function checkSynthesis(): Promise<Finding> {
  const check = 'speech synthesis';
  try {
    const synthesizer = await startEspeak({ signal: AbortSignal.timeout(30_000) });
    const format = { encoding: 'LINEAR16', sampleRateHz: 8000 } as const;
    const clause = { text: 'Hello.', voice: BUILT_IN_VOICES[0]!.engineName, wordsPerMinute: 137, format };
    await synthesizer.speak(clause).finally(() => synthesizer.close());
    return ok(check, `eSpeak NG: ${speechLanguages().length} languages, ${BUILT_IN_VOICES.length} voices`);
  } catch (error) {
    const advice = 'Run npm ci: eSpeak NG comes with it.';
    return fail(check, `eSpeak NG does not speak: ${reasonOf(error)}`, advice);
  }
}
