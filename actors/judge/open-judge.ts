import type { LanguageModels } from '../../language/llm.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Sql } from '../../storage/database.ts';
import type { Jobs } from '../../storage/jobs.ts';
import type { Logger } from '../logger.ts';
import { createJudgeBatches } from './batch.actor.ts';
import { createJudgeDesk } from './judge-desk.actor.ts';
import type { JudgeDesk } from './judge-desk.ts';
import { createJudging } from './judging.ts';
import { failLostEvaluations } from './lost-evaluations.ts';

export interface OpenJudgeOptions {
  sql: Sql;
  jobs: Pick<Jobs, 'open'>;
  models: LanguageModels;
  node: string;
  boot: string;
  clock: Clock;
  logger: Logger;
}

/** Gives back what an earlier run held, takes up its batches, and judges from then on. */
export async function openJudge(options: OpenJudgeOptions): Promise<{ desk: JudgeDesk; close(): Promise<void> }> {
  const { clock } = options;
  const judging = createJudging(options);
  const batches = createJudgeBatches({ ...options, jobs: await options.jobs.open('judge-batches'), judging });
  await failLostEvaluations({ ...options, now: new Date(clock.now()) });
  await batches.start();
  return {
    desk: createJudgeDesk({ ...options, judging, batches }),
    async close() {
      await batches.close();
      await judging.close();
    },
  };
}
