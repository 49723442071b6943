import { TandemError } from '../../machines/errors.ts';
import { SynthesizerError } from '../../speech/synthesizer.ts';
import type { ReadScriptOptions } from '../../speech/text/read-script.ts';
import { type Script, ScriptError } from '../../speech/text/script.ts';

/** Port of `speech/text/read-script.ts`. @throws ScriptError */
export type ReadScript = (text: string, options: ReadScriptOptions) => Script;

/** Parses a text. @throws TandemError `INVALID_SSML`; `VALIDATION_FAILED` if nothing can be spoken */
export function scriptOf(
  text: string,
  { language, voiceLanguages, readScript }: ReadScriptOptions & { readScript: ReadScript },
): Script {
  const script = refuseInvalidSsml(() => readScript(text, { language, ...(voiceLanguages && { voiceLanguages }) }));
  const isSpeakable = script.clauses.some(({ words }) =>
    words.some(({ spoken, phonemes }) => spoken !== '' || phonemes),
  );
  if (isSpeakable && script.characters > 0) return script;
  const message = 'Nothing of the text can be said: it has no letter or digit.';
  throw new TandemError('VALIDATION_FAILED', message, { details: [{ path: 'text', message }] });
}

/** @throws TandemError `INVALID_SSML` instead of ScriptError */
export function refuseInvalidSsml<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    if (!(cause instanceof ScriptError)) throw cause;
    throw new TandemError('INVALID_SSML', cause.message, { cause });
  }
}

export function engineRefusal(cause: unknown, { isRefunded }: { isRefunded: boolean }): TandemError {
  const money = isRefunded ? 'You were not charged' : 'The charge will be refunded';
  if (cause instanceof SynthesizerError && cause.code === 'too_long') {
    return new TandemError(
      'VALIDATION_FAILED',
      `One sentence of the text takes minutes to speak. ${money}. Split it.`,
      {
        cause,
        details: [{ path: 'text', message: 'One of its sentences takes minutes to speak.' }],
      },
    );
  }
  if (cause instanceof SynthesizerError && cause.code === 'unsayable') {
    return new TandemError('VALIDATION_FAILED', `The voice cannot speak this text. ${money}. Choose another voice.`, {
      cause,
      details: [{ path: 'text', message: 'The voice cannot speak it.' }],
    });
  }
  return new TandemError('TTS_UNAVAILABLE', `The speech engine failed. ${money}. Try again.`, {
    cause,
    retryAfterS: 5,
  });
}
