import { NumberInput, SegmentedControl, Select, Textarea, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { Scale } from 'lucide-react';
import { useUrlSearch } from '../../app/url-search.ts';
import { EmptyState, LoadingState } from '../../parts/states.tsx';
import { judgeText, noModelText, playgroundText } from '../../text/playground.ts';
import { curlOf } from '../command.ts';
import { useDraft } from '../draft.ts';
import { NoModel, Problem } from '../problem.tsx';
import { useModels } from '../use-models.ts';
import { Workbench } from '../workbench.tsx';
import { EvaluationView } from './evaluation-view.tsx';
import { evaluate, evaluationRequestOf, type JudgeForm } from './judge-request.ts';
import { RubricField } from './rubric-field.tsx';

type JudgeDraft = Pick<JudgeForm, 'transcript' | 'model' | 'samples'>;
type Set = (changes: Partial<JudgeDraft>) => void;

const INITIAL: JudgeDraft = { transcript: '', model: null, samples: 1 };

/** Judges a call (`?call=`) or a transcript with a rubric (`?rubric=`). */
export function JudgeTab() {
  const [search] = useUrlSearch();
  const [draft, setDraft] = useDraft('judge', INITIAL);
  const models = useModels('judge');
  const run = useMutation({ mutationFn: evaluate });
  const callId = search.call ?? '';
  const form: JudgeForm = {
    ...draft,
    candidate: search.candidate === 'text' ? 'text' : 'call',
    callId,
    rubricId: search.rubric ?? null,
  };
  const hasCandidate = (form.candidate === 'call' ? callId : form.transcript).trim() !== '';
  const command = { method: 'POST' as const, path: '/judge/evaluate', json: evaluationRequestOf(form) };
  return (
    <Workbench
      settings={<Fields form={form} models={models.ids} set={(changes) => setDraft({ ...draft, ...changes })} />}
      service="llm"
      price={judgeText.price}
      run={judgeText.evaluate}
      isRunning={run.isPending}
      isReady={hasCandidate && form.rubricId !== null}
      onRun={() => run.mutate(form)}
      code={curlOf(command, location.origin)}
      codeTitle={playgroundText.command}
    >
      <JudgeOutput run={run} isModelMissing={models.isMissing} />
    </Workbench>
  );
}

type Run = ReturnType<typeof useMutation<Awaited<ReturnType<typeof evaluate>>, Error, JudgeForm>>;

function JudgeOutput({ run: { data, error, isPending }, isModelMissing }: { run: Run; isModelMissing: boolean }) {
  if (isPending) return <LoadingState />;
  if (error) return <Problem error={error} need={noModelText.judge} />;
  if (data) return <EvaluationView evaluation={data} />;
  if (isModelMissing) return <NoModel need={noModelText.judge} />;
  return (
    <EmptyState icon={Scale} title={judgeText.emptyTitle}>
      {judgeText.empty}
    </EmptyState>
  );
}

function Fields({ form, models, set }: { form: JudgeForm; models: readonly string[]; set: Set }) {
  const [, change] = useUrlSearch();
  return (
    <>
      <SegmentedControl
        aria-label={judgeText.candidate}
        fullWidth
        value={form.candidate}
        onChange={(value) => change({ candidate: value === 'text' ? value : undefined })}
        data={[
          { value: 'call', label: judgeText.call },
          { value: 'text', label: judgeText.pasted },
        ]}
      />
      {form.candidate === 'call' ? (
        <TextInput
          label={judgeText.callId}
          description={judgeText.callHint}
          value={form.callId}
          maxLength={128}
          onChange={(event) => change({ call: event.currentTarget.value })}
        />
      ) : (
        <Textarea
          label={judgeText.transcript}
          description={judgeText.transcriptHint}
          value={form.transcript}
          maxLength={200_000}
          onChange={(event) => set({ transcript: event.currentTarget.value })}
          autosize
          minRows={6}
          maxRows={16}
        />
      )}
      <RubricField />
      <Select
        label={judgeText.model}
        placeholder={judgeText.rubricModel}
        data={[...models]}
        value={form.model}
        onChange={(model) => set({ model })}
        clearable
        clearButtonProps={{ 'aria-label': judgeText.rubricModel }}
      />
      <NumberInput
        label={judgeText.samples}
        description={judgeText.samplesHint}
        min={1}
        max={5}
        allowDecimal={false}
        value={form.samples}
        onChange={(value) => typeof value === 'number' && set({ samples: value })}
      />
    </>
  );
}
