@echo off
rem Adds tagkin to the Start menu, and to "Send to" for folders.
set "TAGKIN=%~dp0tagkin.exe"
powershell -NoProfile -Command "$shell = New-Object -ComObject WScript.Shell; foreach ($name in 'Programs', 'SendTo') { $link = $shell.CreateShortcut((Join-Path $shell.SpecialFolders.Item($name) 'tagkin.lnk')); $link.TargetPath = $env:TAGKIN; $link.Save() }"
