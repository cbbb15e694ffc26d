import { mount } from 'svelte'
import { useWords } from './api/client.ts'
import App from './app/App.svelte'
import { t } from './i18n/i18n.svelte.ts'
import './styles.css'

useWords(t)
mount(App, { target: document.body })
