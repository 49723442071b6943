import { Select, Switch, TagsInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useUrlSearch } from '../../app/url-search.ts';
import { transcriptionText } from '../../text/speech.ts';
import { useDraft } from '../draft.ts';
import { transcriptionLanguagesQuery } from '../queries.ts';

export interface TranscriptionOptions {
  language: string | null;
  terms: string[];
  diarize: boolean;
}

/** Options shared by live and file transcription, and their fields. */
export function useTranscriptionOptions() {
  const [search, change] = useUrlSearch();
  const [terms, setTerms] = useDraft<string[]>('transcription.terms', []);
  const [diarize, setDiarize] = useDraft('transcription.diarize', false);
  const languages = useQuery(transcriptionLanguagesQuery);
  const options: TranscriptionOptions = { language: search.language ?? null, terms, diarize };
  const fields = (
    <>
      <Select
        label={transcriptionText.language}
        placeholder={transcriptionText.auto}
        data={(languages.data ?? []).map(({ language_id: value, name: label }) => ({ value, label }))}
        value={options.language}
        onChange={(language) => change({ language: language ?? undefined })}
        error={languages.error?.message}
        searchable
        clearable
        clearButtonProps={{ 'aria-label': transcriptionText.auto }}
      />
      <TagsInput
        label={transcriptionText.terms}
        description={transcriptionText.termsHint}
        value={terms}
        onChange={setTerms}
        maxTags={200}
        acceptValueOnBlur
      />
      <Switch
        label={transcriptionText.speakers}
        checked={diarize}
        onChange={(event) => setDiarize(event.currentTarget.checked)}
      />
    </>
  );
  return { options, fields };
}
