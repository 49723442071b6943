import type { LanguageModels } from '../../language/llm.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Sql } from '../../storage/database.ts';
import type { Jobs } from '../../storage/jobs.ts';
import type { NodeDirectory } from '../../storage/nodes/node-directory.ts';
import type { LostOwner } from '../../storage/queries/nodes.ts';
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
  nodes: Pick<NodeDirectory, 'onLost'>;
  clock: Clock;
  logger: Logger;
}

/** Opens the judge desk: releases holds of earlier boots and lost nodes, and resumes batches. */
export async function openJudge(options: OpenJudgeOptions): Promise<{ desk: JudgeDesk; close(): Promise<void> }> {
  const { clock, node, boot, nodes } = options;
  const judging = createJudging(options);
  const batches = createJudgeBatches({ ...options, jobs: await options.jobs.open('judge-batches'), judging });
  const failLost = async (lost: LostOwner) =>
    void (await failLostEvaluations({ ...options, lost, now: new Date(clock.now()) }));
  await failLost({ node, exceptBoot: boot });
  nodes.onLost(failLost);
  await batches.start();
  return {
    desk: createJudgeDesk({ ...options, judging, batches }),
    async close() {
      await batches.close();
      await judging.close();
    },
  };
}
