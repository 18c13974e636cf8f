def write_tables(studies, folder): pass
def write_figures(studies, folder): pass
def write_page(studies, folder): pass
