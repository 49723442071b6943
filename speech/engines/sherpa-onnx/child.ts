import { serveRecognizer } from '../../engine-process/served-recognizer.ts';
import { LanguageSwitchingRecognizer, type SherpaProcessArgument } from './language-switching-recognizer.ts';
import { loadRecognizer } from './load-recognizer.ts';

// Only our own engine starts this process, so the argument is trusted.
serveRecognizer(async (argument) => {
  const asked = argument as SherpaProcessArgument;
  return 'identification' in asked ? new LanguageSwitchingRecognizer(asked) : await loadRecognizer(asked);
});
