import { serveRecognizer } from '../../engine-process/served-recognizer.ts';
import { LanguageSwitchingRecognizer, type SherpaProcessArgument } from './language-switching-recognizer.ts';
import { loadRecognizer } from './load-recognizer.ts';

// The argument is of our own engine: nobody else starts this process.
serveRecognizer(async (argument) => {
  const asked = argument as SherpaProcessArgument;
  return 'identification' in asked ? new LanguageSwitchingRecognizer(asked) : await loadRecognizer(asked);
});
