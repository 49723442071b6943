import { createEspeakEngine } from '../../../speech/engines/espeak-ng/espeak-engine.ts';
import { itIsASynthesisEngine } from './synthesizer-conformance.ts';

itIsASynthesisEngine({
  name: 'eSpeak NG',
  engine: async () => createEspeakEngine({ processes: 1 }),
  voice: 'en-us',
  text: 'The people of the town had never seen a ship as large as the one that lay before them in the harbour',
  // The noise generator keeps its state between clauses.
  isDeterministic: false,
  hasMarks: true,
  speedTolerance: 0.6,
});
