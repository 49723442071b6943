import process from 'node:process';
import { openJudge } from '../../../actors/judge/open-judge.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { openDatabase } from '../../../storage/database.ts';
import { openJobs } from '../../../storage/jobs.ts';
import { FakeLanguageModels } from '../../language/fake-language-models.ts';
import { firstAnswers } from '../../language/judge/rubrics.ts';
import { noOtherNodes } from '../fakes.ts';

/** Judges batches until killed. Arguments: database URL, and the number of requests before its model hangs. */
const [databaseUrl = '', answers = '0'] = process.argv.slice(2);
const { sql } = await openDatabase({ url: databaseUrl });
const models = new FakeLanguageModels();
models.otherwise = (request) =>
  models.requests.length <= Number(answers) ? firstAnswers(request) : { neverEnds: true };
const logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => logger };
const jobs = await openJobs({ databaseUrl });
await openJudge({ sql, jobs, models, node: 'node-1', boot: 'boot-1', nodes: noOtherNodes, clock: systemClock, logger });
