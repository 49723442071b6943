import { SegmentedControl, Select, Switch, Textarea, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { correctionText, noModelText, playgroundText } from '../../text/playground.ts';
import { curlOf } from '../command.ts';
import { useDraft } from '../draft.ts';
import { Problem } from '../problem.tsx';
import { useModels } from '../use-models.ts';
import { Workbench } from '../workbench.tsx';
import { CorrectionOutput } from './correction-output.tsx';
import { type AppContext, type CorrectionForm, correct, correctionRequestOf } from './correction-request.ts';

const RULES = 'tandem-rules-1';

const INITIAL: CorrectionForm = {
  text: correctionText.example,
  model: null,
  context: null,
  tone: '',
  capitalize: true,
  punctuate: true,
  abbreviations: false,
  contractions: null,
  dictionary: '',
};

export function CorrectionTab() {
  const [form, setForm] = useDraft('correction', INITIAL);
  const run = useMutation({ mutationFn: correct });
  const command = { method: 'POST' as const, path: '/v1/chat/completions', json: correctionRequestOf(form) };
  return (
    <Workbench
      settings={<Fields form={form} set={(changes) => setForm({ ...form, ...changes })} />}
      service="llm"
      price={correctionText.price}
      run={correctionText.correct}
      isRunning={run.isPending}
      isReady={form.text.trim() !== ''}
      onRun={() => run.mutate(form)}
      code={curlOf(command, location.origin)}
      codeTitle={playgroundText.command}
    >
      {run.error ? <Problem error={run.error} need={noModelText.chat} /> : <CorrectionOutput result={run.data} />}
    </Workbench>
  );
}

interface FieldsProps {
  form: CorrectionForm;
  set: (changes: Partial<CorrectionForm>) => void;
}

function Fields({ form, set }: FieldsProps) {
  const models = useModels('chat');
  return (
    <>
      <Textarea
        label={correctionText.text}
        value={form.text}
        onChange={(event) => set({ text: event.currentTarget.value })}
        maxLength={20_000}
        autosize
        minRows={5}
        maxRows={14}
        spellCheck={false}
      />
      <Select
        label={correctionText.model}
        placeholder={correctionText.best}
        data={[{ value: RULES, label: correctionText.rules }, ...models.ids.filter((id) => id !== RULES)]}
        value={form.model}
        onChange={(model) => set({ model })}
        clearable
        clearButtonProps={{ 'aria-label': correctionText.best }}
      />
      <Select
        label={correctionText.context}
        data={Object.entries(correctionText.contexts).map(([value, label]) => ({ value, label }))}
        value={form.context ?? ''}
        onChange={(value) => set({ context: (value || null) as AppContext | null })}
        allowDeselect={false}
      />
      <StyleFields form={form} set={set} />
      <Textarea
        label={correctionText.dictionary}
        description={correctionText.dictionaryHint}
        value={form.dictionary}
        onChange={(event) => set({ dictionary: event.currentTarget.value })}
        autosize
        minRows={2}
        maxRows={8}
        spellCheck={false}
      />
    </>
  );
}

function StyleFields({ form, set }: FieldsProps) {
  return (
    <>
      <TextInput
        label={correctionText.tone}
        description={correctionText.toneHint}
        value={form.tone}
        maxLength={100}
        onChange={(event) => set({ tone: event.currentTarget.value })}
      />
      <div>
        <SegmentedControl
          aria-label={correctionText.contractions}
          fullWidth
          size="xs"
          value={form.contractions === null ? '' : String(form.contractions)}
          onChange={(value) => set({ contractions: value === '' ? null : value === 'true' })}
          data={Object.entries(correctionText.contractionChoices).map(([value, label]) => ({ value, label }))}
        />
      </div>
      <Switch
        label={correctionText.capitalize}
        checked={form.capitalize}
        onChange={(event) => set({ capitalize: event.currentTarget.checked })}
      />
      <Switch
        label={correctionText.punctuate}
        checked={form.punctuate}
        onChange={(event) => set({ punctuate: event.currentTarget.checked })}
      />
      <Switch
        label={correctionText.abbreviations}
        checked={form.abbreviations}
        onChange={(event) => set({ abbreviations: event.currentTarget.checked })}
      />
    </>
  );
}
