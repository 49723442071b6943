import { Input, NumberInput, SegmentedControl, Slider, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { memoryText, playgroundText } from '../../text/playground.ts';
import { curlOf } from '../command.ts';
import { useDraft } from '../draft.ts';
import { Problem } from '../problem.tsx';
import { Workbench } from '../workbench.tsx';
import { AddMemory } from './add-memory.tsx';
import { FoundMemories } from './found-memories.tsx';
import { type SearchForm, search, searchRequestOf } from './memory-requests.ts';
import { StoredMemories } from './stored-memories.tsx';

const INITIAL: SearchForm = { query: '', mode: 'memories', limit: 10, threshold: 0, maxTokens: 1_000 };

export function MemoryTab() {
  const [form, setForm] = useDraft('memory.search', INITIAL);
  const run = useMutation({ mutationFn: search });
  const request = searchRequestOf(form);
  return (
    <>
      <AddMemory />
      <Workbench
        settings={<SearchFields form={form} set={(changes) => setForm({ ...form, ...changes })} />}
        service="memory"
        price={memoryText.price}
        run={memoryText.search}
        isRunning={run.isPending}
        isReady={form.query.trim() !== ''}
        onRun={() => run.mutate(form)}
        code={curlOf({ method: 'POST', ...request }, location.origin)}
        codeTitle={playgroundText.command}
      >
        {run.error ? (
          <Problem error={run.error} need="" />
        ) : run.data ? (
          <FoundMemories result={run.data} />
        ) : (
          <StoredMemories />
        )}
      </Workbench>
    </>
  );
}

interface SearchFieldsProps {
  form: SearchForm;
  set: (changes: Partial<SearchForm>) => void;
}

function SearchFields({ form, set }: SearchFieldsProps) {
  return (
    <>
      <TextInput
        label={memoryText.query}
        placeholder={memoryText.placeholder}
        value={form.query}
        maxLength={2_000}
        onChange={(event) => set({ query: event.currentTarget.value })}
      />
      <SegmentedControl
        aria-label={memoryText.mode}
        fullWidth
        value={form.mode}
        onChange={(value) => set({ mode: value as SearchForm['mode'] })}
        data={[
          { value: 'memories', label: memoryText.memories },
          { value: 'context', label: memoryText.context },
        ]}
      />
      {form.mode === 'memories' ? (
        <NumberInput
          label={memoryText.limit}
          min={1}
          max={100}
          allowDecimal={false}
          value={form.limit}
          onChange={(value) => typeof value === 'number' && set({ limit: value })}
        />
      ) : (
        <NumberInput
          label={memoryText.maxTokens}
          min={64}
          max={16_000}
          allowDecimal={false}
          value={form.maxTokens}
          onChange={(value) => typeof value === 'number' && set({ maxTokens: value })}
        />
      )}
      <Input.Wrapper label={memoryText.threshold} labelElement="div">
        <Slider
          thumbLabel={memoryText.threshold}
          min={0}
          max={1}
          step={0.05}
          value={form.threshold}
          onChange={(threshold) => set({ threshold })}
          label={(value) => value.toFixed(2)}
        />
      </Input.Wrapper>
    </>
  );
}
